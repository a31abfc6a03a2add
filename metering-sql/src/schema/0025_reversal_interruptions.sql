-- Reversals of processors' payments that ended and then took back again, such as a dispute that was won and then lost.

-- `ended:again,ended:again`, in milliseconds, in order; NULL if there are none.
ALTER TABLE payment_reversal ADD COLUMN interruptions TEXT;

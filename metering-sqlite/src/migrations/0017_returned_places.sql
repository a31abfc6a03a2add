-- Version 17: places in the month's count of a route that refunds gave back, with their prices.

-- `month;atoms:places,atoms:places`, by ascending price; NULL if there are none. Ignored unless the month is the row's.
ALTER TABLE route_volume ADD COLUMN returned TEXT;

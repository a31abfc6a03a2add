-- How the deliveries to webhooks are doing, whatever number of them is kept.

-- Those that were attempted, by what came of it and when. New ones are not in it, so events are written as before.
CREATE INDEX delivery_ended ON delivery (webhook, state, last_at, attempts) WHERE last_at IS NOT NULL;

-- The first deliveries of their lines that failed, the one that is tried longest first. Nearly empty.
CREATE INDEX delivery_failing ON delivery (since, id) WHERE is_head AND last_error IS NOT NULL;

-- Version 15: places in the month's count of a route that refunds gave back, with their prices.

-- `month;atoms:places,atoms:places`, by ascending price; NULL if there are none. Ignored unless the month is the row's:
-- nodes of version 14, which do not know this column, keep it when they begin another month.
ALTER TABLE route_volume ADD COLUMN returned TEXT;

-- Nodes of version 14 keep charging. Their requests have the price by the count alone and take no returned place, and their
-- refunds give back the last place, whatever it cost.

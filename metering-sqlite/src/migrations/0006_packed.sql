DROP TABLE activity;
ALTER TABLE meter DROP COLUMN activity_head;
ALTER TABLE meter DROP COLUMN activity_mark;
ALTER TABLE meter DROP COLUMN activity_since_mark;
ALTER TABLE meter DROP COLUMN activity_floor;

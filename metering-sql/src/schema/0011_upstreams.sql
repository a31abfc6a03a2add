-- Which upstream served a request that was settled; NULL if its route names none, or none served it.
ALTER TABLE hold ADD COLUMN upstream TEXT;

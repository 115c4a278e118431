"""What measures, proves and fits the product; no part of the installed package."""

"""Columns of text as numbers, true and false, dates or categories; what is in the way is told."""

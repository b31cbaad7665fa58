-- Tells the time.
return told

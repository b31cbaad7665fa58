-- Tells the time.
return time[1] .. '.' .. time[2]

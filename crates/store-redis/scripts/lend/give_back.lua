-- Gives back permits of a loan that were not spent.
--
-- KEYS: the counter. ARGV: the numbers `a` of its algorithm, of which the cost is what is given back; when the
-- loan was made, when it ends, and when a bucket would be full again if nobody else were charged, in microseconds.
-- Nothing is given back of what the counter has forgotten by itself.
local a = {unpack_struct(NUMBERS, ARGV[1])}
local made, ends, whole = unpack_struct('<ddd', ARGV[2])
local c = {key = KEYS[1]}
open(c, a)
if c.found then give_back(c, a, made, ends, whole) end
return told

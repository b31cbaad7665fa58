-- Gives back permits of a loan that were not spent.
--
-- KEYS: the counter and, of a bucket, its note. ARGV: the numbers `a` of its algorithm, of which the cost is what
-- is given back; when the loan was made, when it ends, when a bucket would be full again if nobody else were
-- charged, in microseconds, and what its note said.
-- Nothing is given back of what the counter has forgotten by itself.
local a = {unpack_struct(NUMBERS, ARGV[1])}
local made, ends, whole, noted_before = unpack_struct('<dddd', ARGV[2])
local c = {key = KEYS[1]}
open(c, a)
if c.found then give_back(c, a, made, ends, whole, noted_before) end
return told

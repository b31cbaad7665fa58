-- Gives back permits of a loan that were not spent.
--
-- KEYS: the counter and, of a bucket, its note. ARGV: the numbers `a` of its algorithm, of which the cost is what
-- is given back; when the loan was made, when it ends (a bucket: until when it takes permits back), when a bucket
-- would be full again if nobody else were charged, in microseconds; what its note said; and how many permits.
-- Reply: the time, a space, and how many permits the counter took. It takes none that it has forgotten by itself.
local a = {unpack_struct(NUMBERS, ARGV[1])}
local made, ends, whole, noted_before, permits = unpack_struct('<ddddd', ARGV[2])
local c = {key = KEYS[1]}
open(c, a)
local taken = c.found and give_back(c, a, made, ends, whole, noted_before, permits) or 0
return time[1] .. '.' .. time[2] .. format(' %d', taken)

-- Gives back to one counter what was charged before.
--
-- KEYS: the counter. ARGV: the numbers `a` of its algorithm, of which the cost is what is given back.
local a = {unpack_struct(NUMBERS, ARGV[1])}
local c = {key = KEYS[1]}
open(c, a)
if c.found then refund(c, a) end
return told

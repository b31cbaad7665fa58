-- Forgets one counter.
--
-- KEYS: the counter. Reply: 1 if there was one that said more than none does.
local ends = call('PEXPIRETIME', KEYS[1])
call('DEL', KEYS[1])
return (ends - shift) * 1000 > now and 1 or 0

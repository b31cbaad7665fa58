-- The note of a bucket: all that was ever given back to it of loans, in microseconds, rounded up.
--
-- KEYS[2] is where it lies: beside the counter, which is the same whether there is a note or not. A give-back
-- or the refund of a charge writes it and a draw reads it, so that a loan can tell what was given back since. It is kept for an eighth of
-- the window after either, eight times as long as any loan lives: the clock of a server that takes over may be ahead.
local function note_ends(a) return format('%d', math.ceil((now + a[10] / 4) / 1000) + shift) end

local function noted(v)
  local total = not v and 0 or match(v, '^%d+$') and tonumber(v)
  if not total then error('undecodable value of ' .. KEYS[2], 0) end
  return total
end

-- Notes that what is asked for was given back.
local function add_to_note(a)
  local total = noted(call('GET', KEYS[2])) + a[1] + (a[2] > 0 and 1 or 0)
  call('SET', KEYS[2], format('%d', total), 'PXAT', note_ends(a))
end

-- What was drawn is in the window it was drawn in: the one now or the one before.
local function give_back(c, a, made)
  local index, previous, current = settle(c, a)
  local drawn_in = floor(made / a[5])
  if drawn_in == index then
    current = math.max(current - a[1], 0)
  elseif drawn_in + 1 == index then
    previous = math.max(previous - a[1], 0)
  else
    return
  end
  if previous + current == 0 then
    call('DEL', c.key)
  else
    put(c, format('%d:%d:%d', index, previous, current), c.over, ends(index, a), ends(c.index, a))
  end
end

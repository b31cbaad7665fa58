-- Of a bucket, what dripped in since the charge was made would have been lost without it. Of a queue, only the last
-- departures are refunded: those behind keep theirs. A refund of nothing still clamps, as a decision does.
local function refund_charge(c, a, made, empty, empty_ns)
  local is_lost
  if empty >= 0 then
    local us, rest = c.us, c.rest
    if us - now > a[7] or us - now == a[7] and rest > a[8] then us, rest = now + a[5], a[6] end
    local ns = math.ceil(rest / NANO)
    if ns == 1000 then us, ns = us + 1, 0 end
    is_lost = us ~= empty or ns ~= empty_ns or us < now or us == now and ns == 0
  else
    a[1] = a[1] - math.max(now - made, 0)
    is_lost = a[1] < 0
  end
  if is_lost then a[1], a[2] = 0, 0 end
  refund(c, a)
  if KEYS[2] and not is_lost then add_to_note(a) end
end

local function refund(c, a)
  local us, rest = c.us - now, c.rest
  local is_ahead = us > a[7] or us == a[7] and rest > a[8]
  if is_ahead and (a[5] > 0 or a[6] > 0) then us, rest = a[5], a[6] end
  us, rest = us - a[1], rest - a[2]
  if rest < 0 then us, rest = us - 1, rest + MICRO end
  local is_whole = us < 0 or us == 0 and rest == 0
  if is_whole then us, rest = 0, 0 end
  if is_whole and not has_period(c, a[9]) then
    call('DEL', c.key)
  else
    put(c, a, now + us, rest)
  end
end

local function refund(c, a)
  local left = math.min(a[1], c.total)
  if left == c.total and not has_period(c, a[4]) then
    call('DEL', c.key)
    return
  end
  -- Newest first. What the newest gives back is written with it.
  local taken = math.min(left, c.current)
  local index, changes = c.newest, {}
  c.total, c.current, left = c.total - left, c.current - taken, left - taken
  local oldest = index - a[7]
  while left > 0 and index > oldest do
    index = index - 1
    local count = tonumber(call('HGET', c.key, index_of(index))) or 0
    local back = math.min(left, count)
    if back > 0 then
      changes[#changes + 1] = index_of(index)
      changes[#changes + 1] = index_of(count - back)
      left = left - back
    end
  end
  put(c, a, 0)
  if changes[1] then call('HSET', c.key, unpack(changes)) end
end

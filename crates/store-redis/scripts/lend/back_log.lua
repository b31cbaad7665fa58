-- What was drawn is remembered as of the loan's end, or later if something later was there already. The first
-- entries that are not before that go: no other leaves any earlier for it.
local function give_back(c, a, made, until_then)
  settle(c, a)
  local from, low, high = math.ceil(until_then / a[6]), 0, c.used
  if from * a[6] + a[5] <= now then return end
  while low < high do
    local middle = floor((low + high) / 2)
    if stamp(c, middle) < from then low = middle + 1 else high = middle end
  end
  local back = math.min(a[1], c.used - low)
  local left = c.used - back
  if back == 0 then return end
  if left == 0 and not has_period(c, a[4]) then
    call('DEL', c.key)
    return back
  end
  local newest = c.newest
  if low + back == c.used then newest = low > 0 and stamp(c, low - 1) or 0 end
  local first = HEADER + 4 * c.head
  local before = low > 0 and call('GETRANGE', c.key, first, first + 4 * low - 1) or ''
  local after = call('GETRANGE', c.key, first + 4 * (low + back), -1)
  call('SET', c.key, header(c, newest, 0, 0) .. before .. after, 'PXAT', ends(c, a, newest))
  return back
end

-- What was drawn is remembered as of the loan's end, or later if something later was there already. The first
-- entries that are not before that go: no other leaves any earlier for it.
local function give_back(c, a, made, ends)
  settle(c, a)
  local from, low, high = math.ceil(ends / a[6]), 0, c.used
  if from * a[6] + a[5] <= now then return end
  while low < high do
    local middle = floor((low + high) / 2)
    if stamp(c, middle) < from then low = middle + 1 else high = middle end
  end
  local back = math.min(a[1], c.used - low)
  local left = c.used - back
  if back == 0 then return end
  if left == 0 then
    call('DEL', c.key)
    return back
  end
  local newest = low + back == c.used and stamp(c, low - 1) or c.newest
  local first = HEADER + 4 * c.head
  local before = low > 0 and call('GETRANGE', c.key, first, first + 4 * low - 1) or ''
  local after = call('GETRANGE', c.key, first + 4 * (low + back), -1)
  local header = pack_struct(FORMAT, newest, c.over or -1, 0, 0)
  local expiry = math.ceil((newest * a[6] + a[5]) / 1000) + shift
  call('SET', c.key, header .. before .. after, 'PXAT', format('%d', expiry))
  return back
end

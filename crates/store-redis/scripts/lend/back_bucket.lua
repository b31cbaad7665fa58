-- Had the permits not been drawn, the bucket would have been full earlier by what they take, and have lost
-- what drips in from then on. So no more is given back than would be missing all the same: what was missing
-- after the loan, less what has dripped in and what others gave back since. A charge only adds to it.
-- Nothing goes back after `ends`, until which the note is sure to be kept, nor if the note says less than it did:
-- then it was lost.
local function give_back(c, a, made, ends, whole, noted_before, permits)
  if now >= ends then return end
  local total = noted(call('GET', KEYS[2]))
  local missing = whole - (total - noted_before) - now
  if total < noted_before or missing <= 0 then return end
  if a[1] >= missing then
    permits = floor(permits * missing / a[1])
    a[1], a[2] = missing, 0
  end
  refund(c, a)
  add_to_note(a)
  return permits
end

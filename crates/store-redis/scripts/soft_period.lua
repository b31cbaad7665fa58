-- The period of soft admissions of a limit with `soft_for`, as `SoftPeriod` of the core defines it.
--
-- c.since and c.step are the period, c.old_since and c.old_step the same before the request; c.window is the window.
-- c.since is the first soft admission in microseconds, and c.step says how many thousandths of `soft_for` later the
-- last request above the limit came. A period that has ended has the step ENDED, and c.since is that request.
-- As text: both in decimal, the step in four digits.
local ENDED = 1023

local function set_period(c, since, step)
  c.since, c.step, c.old_since, c.old_step = since, step, since, step
end

local function read_period(c, digits)
  if digits and #digits > 4 then
    set_period(c, tonumber(string.sub(digits, 1, -5)), tonumber(string.sub(digits, -4)))
  end
end

local function period_text(since, step) return format('%d%04d', since, step) end

-- The length of a step in microseconds.
local function step_length(soft_for) return math.max(math.ceil(soft_for / 1000), 1) end

-- When the period is over, or 0.
local function period_ends(c, soft_for)
  if not c.since then return 0 end
  local last = c.since
  if c.step < ENDED then last = last + c.step * step_length(soft_for) end
  return last + c.window
end

-- Forgets a period that is over, and one of a limit that has no `soft_for` any more.
local function has_period(c, soft_for)
  if c.since and (soft_for < 0 or now >= period_ends(c, soft_for)) then c.since, c.step = nil, nil end
  return c.since ~= nil
end

local function is_soft(c, soft_for) return c.step < ENDED and now < c.since + soft_for end

-- Notes a request above the limit.
local function note_above(c, soft_for)
  if not is_soft(c, soft_for) then
    c.since = c.step == ENDED and math.max(c.since, now) or now
    c.step = ENDED
  else
    c.step = math.max(c.step, math.ceil((now - c.since) / step_length(soft_for)))
  end
end

-- Notes that a charge was denied.
local function note_denied(c, soft_for)
  c.refused, c.has_denied = true, true
  if has_period(c, soft_for) then note_above(c, soft_for) end
end

-- Notes that a charge was allowed on the extra.
local function note_soft(c, soft_for)
  if has_period(c, soft_for) then
    note_above(c, soft_for)
  elseif soft_for >= 0 then
    c.since, c.step = now, 0
  end
end

-- Returns whether the period is another one after the request. One that is not charged leaves only its denials.
local function close_period(c, soft_for, is_charged)
  if not is_charged then
    c.since, c.step = c.old_since, c.old_step
    if c.has_denied and has_period(c, soft_for) then note_above(c, soft_for) end
  end
  return c.since ~= c.old_since or c.step ~= c.old_step
end

-- Inserts jobs of a queue. ARGV: prefix, queue, '1' if runs made some of them, messages. Returns whether the window is
-- short, and whether jobs of several classes wait together.
local window, n = read_window(ARGV[2]), 0
for at = 4, #ARGV do
  n = insert(window, ARGV[at]) and n + 1 or n
end
save_window(window)
if n > 0 then
  tell(window.queue, n)
end
local first, last = call('LINDEX', window.key, 0), call('LINDEX', window.key, -1)
return { is_short(window.queue) and 1 or 0, ARGV[3] == '1' and priority(first) ~= priority(last) and 1 or 0 }

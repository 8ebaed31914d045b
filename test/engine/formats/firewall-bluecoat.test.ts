import t from 'tap'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow } from '../../support/log-rows.ts'

const LINE =
  'date=2026-11-20 time=08:15:02 time-taken=120 c-ip=192.0.2.45 cs-username=jdoe sc-filter-result=OBSERVED cs-categories="AI" cs(Referer)="https://referer.example/" sc-status=200 s-action=TCP_NC_MISS cs-method=GET cs-uri-scheme=https cs-host=chatgpt.com cs-uri-port=443 cs-uri-path=/setup.zip sc-bytes=900'

const rows: LogRow[] = [
  {
    name: 'a request, in UTC',
    line: LINE,
    verdict: 'event',
    host: 'chatgpt.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02Z',
    action: 'allowed',
  },
  {
    name: 'denied, by what the proxy did',
    line: LINE.replace('OBSERVED', '-').replace('TCP_NC_MISS', 'TCP_DENIED'),
    verdict: 'event',
    host: 'chatgpt.com',
    action: 'blocked',
  },
  {
    name: 'the URL where there is no host',
    line: LINE.replace('cs-host=chatgpt.com', 'cs-uri=https://chatgpt.com/x'),
    verdict: 'event',
    host: 'chatgpt.com',
  },
  {
    name: 'an epoch',
    line: LINE.replace('date=2026-11-20 time=08:15:02', 'x-timestamp=1795162502'),
    verdict: 'event',
    host: 'chatgpt.com',
    time: '2026-11-20T08:15:02Z',
  },
  {
    name: 'an IPv6 client',
    line: LINE.replace('192.0.2.45', '2001:db8:10::45'),
    verdict: 'event',
    host: 'chatgpt.com',
    client: '2001:db8:10::45',
  },
  {
    name: 'an address as the host',
    line: LINE.replace('cs-host=chatgpt.com', 'cs-host=198.51.100.20'),
    verdict: 'noDomain',
  },
  { name: 'no host', line: LINE.replace('cs-host=chatgpt.com', 'cs-host=-'), verdict: 'noDomain' },
  { name: 'a path as the URL', line: LINE.replace('cs-host=chatgpt.com', 'cs-uri=setup.zip'), verdict: 'noDomain' },
  { name: 'a month that does not exist', line: LINE.replace('2026-11', '2026-00'), verdict: 'reject', reason: /^time/ },
  {
    name: 'a client alone does not identify the format',
    line: 'c-ip=192.0.2.45 a=b c=d',
    verdict: 'noDomain',
    format: 'any-kv',
  },
]

checkRows(t, 'firewall-kv', rows)
checkMutations(
  t,
  rows.map(({ line }) => line),
)

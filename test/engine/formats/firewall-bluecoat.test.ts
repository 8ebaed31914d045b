import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import type { LogRows } from '../../support/log-rows.ts'

const LINE =
  'date=2026-11-20 time=08:15:02 time-taken=120 c-ip=192.0.2.45 cs-username=jdoe sc-filter-result=OBSERVED cs-categories="AI" cs(Referer)="https://referer.example/" sc-status=200 s-action=TCP_NC_MISS cs-method=GET cs-uri-scheme=https cs-host=chatgpt.com cs-uri-port=443 cs-uri-path=/setup.zip sc-bytes=900'

const rows: LogRows = {
  'a request, in UTC': [LINE, 'event chatgpt.com from 192.0.2.45 at 2026-11-20T08:15:02Z, allowed'],
  'denied, by what the proxy did': [
    LINE.replace('OBSERVED', '-').replace('TCP_NC_MISS', 'TCP_DENIED'),
    'event chatgpt.com, blocked',
  ],
  'the URL where there is no host': [
    LINE.replace('cs-host=chatgpt.com', 'cs-uri=https://chatgpt.com/x'),
    'event chatgpt.com',
  ],
  'an epoch': [
    LINE.replace('date=2026-11-20 time=08:15:02', 'x-timestamp=1795162502'),
    'event chatgpt.com at 2026-11-20T08:15:02Z',
  ],
  'an IPv6 client': [LINE.replace('192.0.2.45', '2001:db8:10::45'), 'event chatgpt.com from 2001:db8:10::45'],
  'an address as the host': [LINE.replace('cs-host=chatgpt.com', 'cs-host=198.51.100.20'), 'noDomain'],
  'no host': [LINE.replace('cs-host=chatgpt.com', 'cs-host=-'), 'noDomain'],
  'a path as the URL': [LINE.replace('cs-host=chatgpt.com', 'cs-uri=setup.zip'), 'noDomain'],
  'a month that does not exist': [LINE.replace('2026-11', '2026-00'), 'reject: time'],
  'a client alone does not identify the format': ['c-ip=192.0.2.45 a=b c=d', 'noDomain', { format: 'any-kv' }],
}

checkFormat(t, 'firewall-kv', rows)

import t from 'tap'
import { FormatDetector } from '../../../engine/formats/formats.ts'
import { LogLine, SCRATCH_BYTES, SourceMemory } from '../../../engine/formats/log-line.ts'
import { MessageReader } from '../../support/log-rows.ts'
import { cpuMsOf } from '../../support/wait.ts'

/**
 * One line of each format with the name `claude.ai`: the text before and after the place that is
 * filled to make the line long.
 */
const LINES: Readonly<Record<string, readonly (readonly [before: string, after: string])[]>> = {
  'proxy-native': [
    ['1795162502.119    318 192.0.2.45 ', 'TCP_MISS/200 6120 GET http://claude.ai/ -'],
    ['1795162502.119    318 192.0.2.45 TCP_MISS/200 6120 ', 'GET http://claude.ai/ -'],
    ['1795162502.119    318 192.0.2.45 TCP_MISS/200 6120 GET http://claude.ai/', ' -'],
  ],
  'proxy-common': [
    ['192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "GET http://claude.ai/', ' HTTP/1.1" 200 2'],
    ['192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "GET http://claude.ai/ HTTP/1.1" 200 2 "', '"'],
  ],
  'bind-query': [['client 192.0.2.45#2048: query: claude.ai IN A ', '']],
  unbound: [['[3121:1] query: 192.0.2.45 claude.ai. A IN ', '']],
  dnsmasq: [['query[A] claude.ai from 192.0.2.45 ', '']],
  sentences: [
    ['2026-11-20 09:15:02 [31] Request(default/ai/-) claude.ai/', ' 192.0.2.45/- - GET REDIRECT'],
    ['[INFO] 192.0.2.45:51234 - 4711 "A IN claude.ai. udp 43 false 512" NOERROR ', ''],
  ],
  'windows-dns': [
    ['20.11.2026 09:15:03 0B20 PACKET UDP Rcv 192.0.2.45 3fd2 Q [0001 D NOERROR', '] A (6)claude(2)ai(0)'],
    ['20.11.2026 09:15:03 0B20 PACKET UDP Rcv 192.0.2.45 3fd2 Q [0001 D NOERROR] A (6)claude(2)ai(0)', ''],
  ],
}
const FILLERS = [
  ',',
  ' ',
  '"',
  '""',
  '\\"',
  '[',
  '(1)',
  '(1)a',
  '/',
  '#',
  ':',
  'key=value ',
  'client 1.1.1.1#',
  '- ',
  'A ',
]
const LONG_BYTES = 1024 * 1024
/** Linear work takes a few milliseconds, quadratic work minutes. */
const LONG_MS_MAX = 2000

for (const [format, lines] of Object.entries(LINES)) {
  t.test(`${format}: line ends are not part of the line`, async (t) => {
    for (const [before, after] of lines) {
      for (const trailer of ['', '\n', '\r\n', '\0', '\n\0']) {
        const read = new MessageReader().read(`${before}${after}`.trimEnd() + trailer)
        t.match(read, { verdict: 'event', format, host: 'claude.ai', client: '192.0.2.45' }, JSON.stringify(trailer))
      }
    }
  })
}

t.test('a line of a megabyte takes linear time with any filler', async (t) => {
  const line = new LogLine(new Uint8Array(LONG_BYTES + 1024 + SCRATCH_BYTES))
  const detector = new FormatDetector()
  const heads = [['', ''] as const, ...Object.values(LINES).flat()]
  for (const [before, after] of heads) {
    for (const filler of FILLERS) {
      const bytes = Buffer.from(`${before}${filler.repeat(Math.floor(LONG_BYTES / filler.length))}${after}`)
      line.bytes.set(bytes)
      line.memory = new SourceMemory()
      const ms = cpuMsOf(() => detector.read(line, 0, bytes.length))
      if (ms > LONG_MS_MAX) t.fail(`${before}${filler}...: ${ms} ms`)
    }
  }
})

t.test('rows of a table take linear time', async (t) => {
  const line = new LogLine(new Uint8Array(LONG_BYTES + 1024 + SCRATCH_BYTES))
  const detector = new FormatDetector()
  const head = Buffer.from(`#Fields: date time ${'x-none '.repeat(252)}cs-host c-ip`)
  for (const filler of FILLERS) {
    line.bytes.set(head)
    detector.read(line, 0, head.length)
    const bytes = Buffer.from(`2026-11-20 08:15:02 ${filler.repeat(Math.floor(LONG_BYTES / filler.length))}`)
    line.bytes.set(bytes)
    const ms = cpuMsOf(() => detector.read(line, 0, bytes.length))
    if (ms > LONG_MS_MAX) t.fail(`${filler}...: ${ms} ms`)
  }
})

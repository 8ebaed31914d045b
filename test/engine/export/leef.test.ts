import t from 'tap'
import { reporterOf } from '../../../engine/export/finding-event.ts'
import { leefLine } from '../../../engine/export/leef.ts'
import { anyFinding, FINDING } from '../../support/finding-events.ts'
import * as fc from '../../support/property.ts'

const REPORTER = reporterOf('1.0.0')

/** Reads a line as the guide describes it. */
function parse(line: string): { header: string[]; attributes: Map<string, string> } {
  const [version = '', vendor = '', product = '', release = '', event = '', delimiter = '', ...rest] = line.split('|')
  const attributes = rest
    .join('|')
    .split(delimiter)
    .map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)] as const)
  return { header: [version, vendor, product, release, event, delimiter], attributes: new Map(attributes) }
}

t.test('a platform in use', async (t) => {
  t.equal(
    leefLine({ ...FINDING, clients: [{ address: '10.0.0.7', user: 'ada' }] }, REPORTER),
    'LEEF:2.0|Security Posture Service|Security Posture Service|1.0.0|platform.in-use|^|' +
      'devTime=Nov 20 2026 09:15:02.000 UTC^devTimeFormat=MMM dd yyyy HH:mm:ss.SSS zzz^sev=10^cat=llm_chat^' +
      'src=10.0.0.7^usrName=ada^id=7f2b1e0c-5a34-4a0e-9f77-0c1d2e3f4a5b^title=AI platform in use^' +
      'msg=DeepSeek is in use and waits for a decision^organization=Acme^' +
      'organizationId=11111111-2222-4333-8444-555555555555^platform=DeepSeek^platformId=deepseek^vendor=DeepSeek^' +
      'decision=waiting^risk=85^confidence=0.7134^clients=3^matches=41^firstSeen=2026-11-19T09:15:02.000Z^' +
      'lastSeen=2026-11-20T09:15:01.000Z^domain=chat.deepseek.com^domains=chat.deepseek.com,deepseek.com',
  )
})

t.test('values cannot add attributes or lines', async (t) => {
  const message = 'a^sev=1\nb\tc|d'
  const { attributes } = parse(leefLine({ ...FINDING, message, url: 'https://x.example/?a=^b' }, REPORTER))
  t.equal(attributes.get('msg'), 'a sev=1 b c|d')
  t.equal(attributes.get('sev'), '10')
  t.equal(attributes.get('url'), 'https://x.example/?a=%5Eb')
  const details = { sev: 1, threshold: 40 }
  const detailed = parse(leefLine({ ...FINDING, details }, REPORTER)).attributes
  t.equal(detailed.get('sev'), '10', 'no detail replaces an attribute of the format')
  t.equal(detailed.get('threshold'), '40')
})

t.test('any finding is one line, whose attributes are those of the finding', async () => {
  fc.assert(
    fc.property(anyFinding, (finding) => {
      const line = leefLine(finding, REPORTER)
      if (/[\p{Cc}\u2028\u2029]/u.test(line)) return false
      const { header, attributes } = parse(line)
      return (
        header[0] === 'LEEF:2.0' &&
        header[4] === finding.kind &&
        header[5] === '^' &&
        attributes.get('id') === finding.id &&
        attributes.get('risk') === finding.platform?.risk.toString() &&
        Date.parse(attributes.get('devTime') ?? '') === finding.timeMs
      )
    }),
  )
})

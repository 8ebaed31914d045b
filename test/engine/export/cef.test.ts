import t from 'tap'
import { cefLine } from '../../../engine/export/cef.ts'
import { reporterOf } from '../../../engine/export/finding-event.ts'
import { anyFinding, FINDING } from '../../support/finding-events.ts'
import * as fc from '../../support/property.ts'

const REPORTER = reporterOf('1.0.0')

/** Reads a line as the standard describes it. */
function parse(line: string): { header: string[]; extension: Map<string, string> } {
  const header: string[] = []
  let at = 0
  for (let field = ''; header.length < 7; at++) {
    const character = line[at]
    if (character === undefined) throw new Error('the header ends early')
    if (character === '\\') field += line[++at] ?? ''
    else if (character === '|') {
      header.push(field)
      field = ''
    } else field += character
  }
  const extension = new Map<string, string>()
  // A key is a word before an equals sign without a backslash; a value lasts until the next key.
  const text = line.slice(at)
  const keys = [...text.matchAll(/(?:^| )([a-zA-Z0-9]+)=/g)]
  for (const [index, match] of keys.entries()) {
    const value = text.slice(match.index + match[0].length, keys[index + 1]?.index)
    extension.set(
      match[1] ?? '',
      value.replace(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped)),
    )
  }
  return { header, extension }
}

t.test('a platform in use', async (t) => {
  t.equal(
    cefLine({ ...FINDING, clients: [{ address: '10.0.0.7', user: 'ada' }] }, REPORTER),
    'CEF:0|Security Posture Service|Security Posture Service|1.0.0|platform.in-use|AI platform in use|10|' +
      'rt=1795166102000 externalId=7f2b1e0c-5a34-4a0e-9f77-0c1d2e3f4a5b ' +
      'msg=DeepSeek is in use and waits for a decision cat=llm_chat start=1795079702000 end=1795166101000 ' +
      'dhost=chat.deepseek.com src=10.0.0.7 suser=ada ' +
      'cs1Label=Organization cs1=Acme (11111111-2222-4333-8444-555555555555) ' +
      'cs2Label=Platform cs2=DeepSeek (deepseek) cs3Label=Vendor cs3=DeepSeek cs4Label=Decision cs4=waiting ' +
      'cs5Label=Domains cs5=chat.deepseek.com, deepseek.com cn1Label=Risk cn1=85 cn2Label=Clients cn2=3 ' +
      'cn3Label=Matches cn3=41 cfp1Label=Confidence cfp1=0.7134',
  )
})

t.test('a client with an IPv6 address or a pseudonym is in the field for it', async (t) => {
  const of = (address: string) => parse(cefLine({ ...FINDING, clients: [{ address, user: '' }] }, REPORTER)).extension
  t.equal(of('2001:db8::7').get('c6a2'), '2001:db8::7')
  t.equal(of('client-5f3a').get('shost'), 'client-5f3a')
  t.notOk(of('client-5f3a').has('src'))
})

t.test('texts with characters of the format', async (t) => {
  const message = 'a|b\\c=d\ne cs1=forged'
  const line = cefLine({ ...FINDING, title: 'x|y\\z\nw', message }, REPORTER)
  t.match(line, '|x\\|y\\\\z w|')
  t.match(line, 'msg=a|b\\\\c\\=d\\ne cs1\\=forged cat=')
  const { header, extension } = parse(line)
  t.equal(header[5], 'x|y\\z w')
  t.equal(extension.get('msg'), message)
  t.match(extension.get('cs1'), /^Acme/)
})

t.test('any finding is one line, whose fields are those of the finding', async () => {
  fc.assert(
    fc.property(anyFinding, (finding) => {
      const line = cefLine(finding, REPORTER)
      if (/[\p{Cc}\u2028\u2029]/u.test(line)) return false
      const { header, extension } = parse(line)
      const labels = [...extension.keys()].filter((key) => key.endsWith('Label'))
      return (
        header[4] === finding.kind &&
        extension.get('rt') === String(finding.timeMs) &&
        extension.get('externalId') === finding.id &&
        (finding.platform === undefined || extension.get('cn1') === String(finding.platform.risk)) &&
        labels.every((label) => extension.has(label.slice(0, -5)))
      )
    }),
  )
})

t.test('values are as long as the dictionary allows, without half a character', async (t) => {
  const message = `${'a'.repeat(1022)}💥`
  const { extension } = parse(cefLine({ ...FINDING, message }, REPORTER))
  t.equal(extension.get('msg'), 'a'.repeat(1022))
})

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { SENDER_GROUPS, SENDERS, type SenderFacts, shellWord } from '../../../engine/admin/senders.ts'
import { REPOSITORY } from '../../support/programs.ts'

/** The examples of the guides. */
const HOSTS = ['posture.example.com', '192.0.2.10', 'localhost']
const factsOf = (host: string, more: Partial<SenderFacts['reach']> = {}): SenderFacts => ({
  ...{ token: 'MONITORING_TOKEN', visible: '69c66f2c', organization: 'Acme', plainPort: 514 },
  reach: {
    ...{ host, apiPort: 8443, ingestPort: 9443, syslogPort: 6514, pin: 'sha256-key:4ba298…', certificateFile: '' },
    ...more,
  },
})
const guide = (name: string): string =>
  readFileSync(join(REPOSITORY, 'docs', name), 'utf8').replaceAll(' --dry-run', '')
const COMMON = guide('collect/logs.md')

/** test/engine/admin/setup.test.ts compares these with the configuration that runs in tests. */
const RELAYS = ['rsyslog', 'syslog-ng']

for (const sender of SENDERS.filter(({ id }) => !RELAYS.includes(id))) {
  t.test(`the instructions for ${sender.name} are those of docs/${sender.guide}`, async (t) => {
    const text = guide(sender.guide) + COMMON
    const missing = (host: string): string[] =>
      sender
        .steps(factsOf(host))
        .flatMap(({ lines }) => lines)
        .filter((line) => !text.includes(line.trim()))
    const [fewest] = HOSTS.map(missing).sort((a, b) => a.length - b.length)
    t.same(fewest, [])
  })
}

t.test('every sender has an address of its own and a group that is shown', async (t) => {
  t.equal(new Set(SENDERS.map(({ id }) => id)).size, SENDERS.length)
  for (const { id, group, steps } of SENDERS) {
    t.match(id, /^[a-z-]+$/)
    t.ok(SENDER_GROUPS.includes(group), id)
    t.ok(steps(factsOf('localhost')).some(({ lines }) => lines.length > 0) || id === 'pan-os' || id === 'firewall', id)
  }
})

t.test('a collector gets the port and the pin that differ from the defaults', async (t) => {
  const lines = (more: Partial<SenderFacts['reach']>): string =>
    SENDERS.filter(({ group }) => group === 'Collector')
      .flatMap(({ steps }) => steps(factsOf('h.example', more)).flatMap((step) => step.lines))
      .join('\n')
  t.equal(lines({ ingestPort: 1234 }).match(/^HTTPS_PORT=1234$/gm)?.length, 3)
  t.notMatch(lines({ pin: '' }), /SERVICE_FINGERPRINT/)
  t.notMatch(lines({}), /MONITORING_TOKEN/, 'no command has the token in it')
})

t.test('the name of an organization is one word of the shell', async (t) => {
  for (const [text, word] of [
    ['Acme', 'Acme'],
    ['Acme & Sons', "'Acme & Sons'"],
    ["a'b; reboot", "'a'\\''b; reboot'"],
    ['', "''"],
    ['$(x)', "'$(x)'"],
  ] as const) {
    t.equal(shellWord(text), word)
  }
  const facts = { ...factsOf('localhost'), organization: "O'Neil" }
  const lines = SENDERS.flatMap(({ steps }) => steps(facts)).flatMap((step) => step.lines)
  t.ok(lines.includes("sudo posture-admin token bind 69c66f2c --org 'O'\\''Neil' --address 192.0.2.1"))
})

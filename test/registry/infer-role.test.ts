import t from 'tap'
import { loadCatalog, type Rule } from '../../registry/catalog.ts'
import { LABELS_OF_ROLE, ruleOfName } from '../../registry/infer-role.ts'
import { Lookup } from '../../registry/lookup.ts'
import type { Role } from '../../registry/platform.ts'
import * as fc from '../support/property.ts'

const { rules } = loadCatalog()
const [first] = rules
const rule = (over: Partial<Rule>): Rule => ({
  ...(first as Rule),
  domain: 'vendor.example',
  match: 'suffix',
  role: 'web',
  ...over,
})

const BELOW: readonly (readonly [below: string, role: Role])[] = [
  ['', 'web'],
  ['www.', 'web'],
  ['app.', 'web'],
  ['otel.', 'telemetry'],
  ['collector.', 'telemetry'],
  ['logs.', 'telemetry'],
  ['log.', 'telemetry'],
  ['log-analysis.', 'web'],
  ['login.', 'auth'],
  ['log-in.', 'auth'],
  ['sso.eu.', 'auth'],
  ['eu.sso.', 'auth'],
  ['cdn.', 'cdn'],
  ['cdn2.', 'cdn'],
  ['static-eu.', 'cdn'],
  ['assets.', 'cdn'],
  ['update.', 'cdn'],
  ['downloads.', 'cdn'],
  ['status.', 'docs'],
  ['docs.', 'docs'],
  ['help.', 'docs'],
  ['help-desk.', 'web'],
  ['api.', 'api'],
  ['api2.', 'api'],
  ['api-eu.', 'api'],
  ['api.telemetry.', 'telemetry'],
  ['docs.api.', 'docs'],
  ['ios.', 'app'],
  ['android.', 'app'],
  ['mobile-first.', 'web'],
  ['telemetryx.', 'web'],
  ['x-telemetry.', 'telemetry'],
  ['a-cdn.', 'cdn'],
  ['events.statsig.', 'telemetry'],
  ['media-studio.', 'web'],
  ['img2.', 'cdn'],
  ['s3.', 'web'],
]

for (const [below, role] of BELOW) {
  t.test(`${below}vendor.example below a suffix rule: ${role}`, async (t) => {
    for (const name of [`${below}vendor.example`, `${below}vendor.example.`, `${below}vendor.example`.toUpperCase()]) {
      t.equal(ruleOfName(rule({}), name).role, role, name)
    }
    t.equal(ruleOfName(rule({ role: 'cdn' }), `${below}vendor.example`).role, 'cdn', 'a known role stays')
  })
}

const anyLabel = fc.oneof(
  fc.constantFrom(...Object.values(LABELS_OF_ROLE).flat()),
  fc.stringMatching(/^[a-z][a-z0-9-]{0,9}[a-z0-9]$/),
)

t.test('only the role of suffix rules changes, and equal roles are one object', async (t) => {
  const bases = (['suffix', 'exact', 'pattern'] as const).map((match) => rule({ match }))
  fc.assert(
    fc.property(fc.array(anyLabel, { maxLength: 4 }), fc.constantFrom(...bases), (labels, base) => {
      const name = [...labels, 'vendor.example'].join('.')
      const found = ruleOfName(base, name)
      if (base.match !== 'suffix') return found === base
      t.same({ ...found, role: base.role }, base)
      return ruleOfName(base, name) === found
    }),
    { numRuns: 2000 },
  )
})

t.test('a label with a role always shows one', async (t) => {
  for (const [role, labels] of Object.entries(LABELS_OF_ROLE)) {
    for (const label of labels) t.equal(ruleOfName(rule({}), `x.${label}.vendor.example`).role, role, label)
  }
})

t.test('labels that a customer chose show nothing', async (t) => {
  const name = 'docs-search.openai.azure.com'
  const chosen = rule({ domain: 'openai.azure.com', role: 'api' })
  t.equal(ruleOfName(chosen, name), chosen)
})

t.test('registry check shows the inferred role', async (t) => {
  const lookup = new Lookup(loadCatalog())
  const cases: readonly (readonly [host: string, role: Role])[] = [
    ['otel.cline.bot', 'telemetry'],
    ['collector.quillbot.com', 'telemetry'],
    ['quillbot.com', 'web'],
    ['ios.chat.openai.com', 'app'],
    ['api.openai.com', 'api'],
  ]
  for (const [host, role] of cases) t.equal(lookup.check(host)?.role, role, host)
})

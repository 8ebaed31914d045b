import t from 'tap'
import { providerClaims } from '../../../console/sign-in/oidc-claims.ts'
import type { Role } from '../../../engine/store/members.ts'

const SETTINGS = { nameClaim: 'email', groupsClaim: 'groups', groups: [{ group: 'it', role: 'member' as Role }] }
const MANY = Array.from({ length: 2001 }, (_, at) => `group ${at}`)

const CASES: readonly {
  readonly name: string
  readonly settings?: Partial<typeof SETTINGS>
  readonly token: Record<string, unknown>
  readonly userinfo?: Record<string, unknown>
  readonly found: Record<string, unknown> | RegExp
}[] = [
  {
    name: 'all claims in the token',
    token: { sub: '1', email: 'a@x.example', groups: ['it', 'hr'], auth_time: 100 },
    found: { subject: '1', name: 'a@x.example', groups: ['it', 'hr'], authTimeMs: 100_000 },
  },
  {
    name: 'missing claims from the userinfo; the token takes precedence',
    token: { sub: '1', email: 'a@x.example' },
    userinfo: { sub: '1', email: 'b@x.example', groups: ['it'], auth_time: 100 },
    found: { subject: '1', name: 'a@x.example', groups: ['it'], authTimeMs: 0 },
  },
  { name: 'one group as text', token: { sub: '1', email: 'a', groups: 'it' }, found: { groups: ['it'] } },
  { name: 'no groups', token: { sub: '1', email: 'a' }, found: { groups: [] } },
  { name: 'null for no groups', token: { sub: '1', email: 'a', groups: null }, found: { groups: [] } },
  { name: 'groups of another type', token: { sub: '1', email: 'a', groups: [1, {}, 'it'] }, found: { groups: ['it'] } },
  {
    name: 'a claim at a path, and one with a dot in its name',
    settings: { groupsClaim: 'realm_access.roles', nameClaim: 'https://x.example/name' },
    token: { sub: '1', 'https://x.example/name': ' Ada ', realm_access: { roles: ['it'] } },
    found: { name: 'Ada', groups: ['it'] },
  },
  {
    name: 'groups that no setting uses are not read',
    settings: { groups: [] },
    token: { sub: '1', email: 'a', groups: MANY },
    found: { groups: [] },
  },
  { name: 'too many groups', token: { sub: '1', email: 'a', groups: MANY }, found: /more than 2000 groups/ },
  {
    name: 'a link instead of groups',
    token: { sub: '1', email: 'a', _claim_names: { groups: 'src1' } },
    found: /too many groups for the token/,
  },
  { name: 'no name', token: { sub: '1', groups: [] }, found: /no claim "email"/ },
  { name: 'a name of another type', token: { sub: '1', email: ['a'], groups: [] }, found: /no claim "email"/ },
  { name: 'a long name', token: { sub: '1', email: 'a'.repeat(256), groups: [] }, found: /too long/ },
  { name: 'an inherited name', settings: { nameClaim: 'constructor.name' }, token: { sub: '1' }, found: /no claim/ },
  { name: 'no subject', token: { email: 'a', groups: [] }, found: /no claim "sub"/ },
  { name: 'a long subject', token: { sub: 'a'.repeat(256), email: 'a', groups: [] }, found: /no claim "sub"/ },
  {
    name: 'an address that is not verified',
    token: { sub: '1', email: 'a', groups: [], email_verified: false },
    found: /not verified/,
  },
]

for (const { name, settings, token, userinfo, found } of CASES) {
  t.test(name, async (t) => {
    const more = userinfo === undefined ? undefined : async () => userinfo
    const claims = providerClaims({ ...SETTINGS, ...settings }, token, more)
    if (found instanceof RegExp) await t.rejects(claims, { name: 'ProviderError', message: found })
    else t.match(await claims, found)
  })
}

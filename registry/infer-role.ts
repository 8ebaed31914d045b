import type { Rule } from './catalog.ts'
import type { Role } from './platform.ts'

/**
 * Labels that show the role of a host below a suffix rule, for any vendor: a client that
 * requests `otel.vendor.example` does not read the vendor's site.
 */
export const LABELS_OF_ROLE = {
  telemetry: ['telemetry', 'otel', 'metrics', 'log', 'logs', 'collector', 'analytics'],
  cdn: ['cdn', 'static', 'assets', 'update', 'updates', 'download', 'downloads'],
  auth: ['auth', 'login', 'log-in', 'signin', 'sign-in', 'sso'],
  docs: ['docs', 'status', 'help', 'blog'],
  app: ['android', 'ios', 'desktop', 'mobile'],
  api: ['api'],
} as const satisfies Partial<Record<Role, readonly string[]>>

const ROLE_OF_LABEL: ReadonlyMap<string, Role> = new Map(
  Object.entries(LABELS_OF_ROLE).flatMap(([role, labels]) => labels.map((label) => [label, role as Role] as const)),
)

/** The roles that a suffix rule gives to everything below its domain without knowing better. */
const UNSPECIFIC_ROLES: ReadonlySet<Role> = new Set<Role>(['web', 'api'])

/** The same rule with another role. One object for each rule and role. */
const inferred = new WeakMap<Rule, Map<Role, Rule>>()

/**
 * The rule for a name that it matches, with the role that the labels of the name show. Registry
 * files name few hosts below a vendor's domain. Callers need the role once for each distinct name,
 * so the matcher does not compute it.
 */
export function withInferredRole(rule: Rule, name: string): Rule {
  const role = roleBelow(rule, name)
  if (role === rule.role) return rule
  let byRole = inferred.get(rule)
  if (byRole === undefined) {
    byRole = new Map()
    inferred.set(rule, byRole)
  }
  let other = byRole.get(role)
  if (other === undefined) {
    other = { ...rule, role }
    byRole.set(role, other)
  }
  return other
}

function roleBelow({ domain, match, role }: Rule, name: string): Role {
  if (match !== 'suffix' || !UNSPECIFIC_ROLES.has(role)) return role
  const isAbsolute = name.endsWith('.')
  const below = name.slice(0, -domain.length - (isAbsolute ? 2 : 1))
  if (below === '') return role
  let found = role
  for (const label of below.toLowerCase().split('.')) {
    const shown = roleOfLabel(label)
    // `api.telemetry` serves telemetry, and `docs.api` documentation.
    if (shown === 'api') found = 'api'
    else if (shown !== undefined) return shown
  }
  return found
}

/** Of `cdn2` and `static-eu`, the first word counts. */
function roleOfLabel(label: string): Role | undefined {
  const known = ROLE_OF_LABEL.get(label)
  if (known !== undefined) return known
  const [word = ''] = label.replace(/\d+$/, '').split('-', 1)
  // `log-analysis` and `help-desk` are products.
  return AMBIGUOUS.has(word) ? undefined : ROLE_OF_LABEL.get(word)
}

/** Words that show a role only as a whole label. */
const AMBIGUOUS: ReadonlySet<string> = new Set(['log', 'help', 'desktop', 'mobile'])

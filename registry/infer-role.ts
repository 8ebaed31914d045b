import type { Rule } from './catalog.ts'
import type { Role } from './platform.ts'

/**
 * Labels that show the role of a host below a suffix rule, for any vendor: a client that
 * requests `otel.vendor.example` does not read the vendor's site.
 */
export const LABELS_OF_ROLE = {
  telemetry: [
    ...['telemetry', 'otel', 'otelcol', 'metrics', 'log', 'logs', 'collector', 'analytics', 'stats', 'statistics'],
    ...['event', 'events', 'statsig', 'sentry', 'rum', 'beacon', 'beacons', 'tracking', 'track', 'tracker', 's', 't'],
    ...['amplitude', 'mixpanel', 'posthog', 'datadog', 'bugsnag'],
  ],
  cdn: [
    ...['cdn', 'static', 'assets', 'asset', 'update', 'updates', 'updater', 'download', 'downloads', 'dl', 'fonts'],
    ...['images', 'image', 'img', 'imgs', 'pics', 'media', 'avatars', 'avatar', 'thumbs', 'thumbnails', 'videos'],
  ],
  auth: ['auth', 'login', 'log-in', 'signin', 'sign-in', 'sso'],
  docs: ['docs', 'status', 'help', 'blog', 'support', 'community', 'forum', 'changelog', 'trust'],
  app: ['android', 'ios', 'desktop', 'mobile'],
  api: ['api'],
} as const satisfies Partial<Record<Role, readonly string[]>>

/** Labels of what other companies' sites embed, and of what a customer shares with the public. */
const LABELS_OF_WIDGETS = [
  ...['widget', 'widgets', 'embed', 'embeds', 'embedded', 'pixel', 'pixels', 'share', 'player', 'players', 'iframe'],
  ...['webchat', 'livechat', 'messenger', 'badge', 'badges', 'oembed'],
]

/**
 * Labels of the hosts at which a customer of a vendor of widgets works, so that a request is use.
 * Everything else below its domain is its widget.
 */
const LABELS_OF_DASHBOARDS = [
  ...['app', 'dashboard', 'dash', 'console', 'admin', 'studio', 'creator', 'portal', 'manager', 'manage', 'builder'],
  ...['workspace', 'platform', 'my', 'backoffice', 'cloud', 'trial'],
]
/** What vendors add to the label of a dashboard: `app-us`, `eu1.app`. */
const REGION = /^(us|eu|uk|de|fr|ca|br|au|in|jp|sg|ap|apac|emea|na|global)\d*$/

/** Certain that a visit to a dashboard is use, as that of a vendor's site is. */
const DASHBOARD_SPECIFICITY = 0.8

/** What a label shows. A widget is no role: a rule for it has another purpose. */
type Shown = Role | 'widget'

const SHOWN_BY: ReadonlyMap<string, Shown> = new Map([
  ...Object.entries(LABELS_OF_ROLE).flatMap(([role, labels]) => labels.map((label) => [label, role as Role] as const)),
  ...LABELS_OF_WIDGETS.map((label) => [label, 'widget'] as const),
])
const DASHBOARDS: ReadonlySet<string> = new Set(LABELS_OF_DASHBOARDS)

/** Words that show something only as a whole label: `log-analysis` and `help-desk` are products. */
const AMBIGUOUS: ReadonlySet<string> = new Set([
  ...['log', 'help', 'desktop', 'mobile', 's', 't', 'event', 'events', 'track', 'image', 'images', 'media', 'share'],
  ...['avatar', 'avatars', 'videos', 'player', 'messenger', 'stats', 'dl', 'support', 'community', 'forum', 'trust'],
])

/** Words that also show it at the end of a label, such as `a-cdn` and `chat-widget`. */
const LAST_WORDS: ReadonlySet<string> = new Set(['cdn', 'telemetry', 'statsig', 'sentry', 'widget', 'embed', 'webchat'])

/** Below these domains, customers choose the first label: `docs-search.openai.azure.com` is an API. */
const NAMED_BY_CUSTOMERS: ReadonlySet<string> = new Set([
  ...['openai.azure.com', 'openai.azure.us', 'cognitiveservices.azure.com', 'cognitiveservices.azure.us'],
  ...['services.ai.azure.com', 'inference.ai.azure.com', 'models.ai.azure.com', 'inference.ml.azure.com'],
  ...['azuredatabricks.net', 'do-ai.run', 'd.run'],
])

/** The roles that a suffix rule gives to everything below its domain without knowing better. */
const UNSPECIFIC_ROLES: ReadonlySet<Role> = new Set<Role>(['web', 'api'])

/** The same rule with what names show. One object for each rule and what is shown. */
const inferred = new WeakMap<Rule, Map<Shown, Rule>>()

/**
 * The rule for a name that it matches, with the role or purpose that the labels of the name show.
 * Registry files name few hosts below a vendor's domain. Callers need it once for each distinct
 * name, so the matcher does not compute it.
 */
export function ruleOfName(rule: Rule, name: string): Rule {
  const { domain, match, role, purpose } = rule
  if (match !== 'suffix' || !UNSPECIFIC_ROLES.has(role) || NAMED_BY_CUSTOMERS.has(domain)) return rule
  const below = name.slice(0, -domain.length - (name.endsWith('.') ? 2 : 1)).toLowerCase()
  if (below === '') return rule
  const labels = below.split('.')
  if (purpose === 'use') return withShown(rule, shownBy(labels) ?? role)
  const [label = '', ...others] = below.split(/[.-]/).filter((word) => !REGION.test(word))
  const isDashboard = purpose === 'widget' && others.length === 0 && DASHBOARDS.has(label)
  return isDashboard ? withShown(rule, 'web') : rule
}

/** What the labels show together. undefined: nothing. */
function shownBy(labels: readonly string[]): Shown | undefined {
  let found: Shown | undefined
  for (const label of labels) {
    const shown = shownByLabel(label)
    // `api.telemetry` serves telemetry, and `docs.api` documentation.
    if (shown === 'api') found = 'api'
    else if (shown !== undefined) return shown
  }
  return found
}

/** Of `cdn2` and `static-eu`, the first word counts. */
function shownByLabel(label: string): Shown | undefined {
  // `cdn2`, and not `s3`.
  const whole = SHOWN_BY.get(label) ?? SHOWN_BY.get(label.replace(/(?<=..)\d+$/, ''))
  if (whole !== undefined) return whole
  const words = label.split('-').map((word) => word.replace(/\d+$/, ''))
  const last = words.at(-1) ?? ''
  if (LAST_WORDS.has(last)) return SHOWN_BY.get(last)
  const [first = ''] = words
  return AMBIGUOUS.has(first) ? undefined : SHOWN_BY.get(first)
}

function withShown(rule: Rule, shown: Shown): Rule {
  if (shown === rule.role && rule.purpose === 'use') return rule
  let known = inferred.get(rule)
  if (known === undefined) {
    known = new Map()
    inferred.set(rule, known)
  }
  let other = known.get(shown)
  if (other === undefined) {
    if (shown === 'widget') other = { ...rule, purpose: 'widget' }
    else if (rule.purpose === 'use') other = { ...rule, role: shown }
    else other = { ...rule, role: shown, purpose: 'use', specificity: DASHBOARD_SPECIFICITY }
    known.set(shown, other)
  }
  return other
}

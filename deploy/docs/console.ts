import { existsSync } from 'node:fs'
import { NAVIGATION } from '../../console/design/navigation.ts'
import { ROUTES } from '../../console/routes.ts'
import { ACTIONS, type Action } from '../../engine/admin/actions.ts'
import { code, markdownTable } from './markdown.ts'

/** The folder of the pictures, from the root of the repository. */
export const PICTURES = 'docs/images/console/'
const REPOSITORY = new URL('../../../', import.meta.url)

/** What each page shows, by its path. */
const ABOUT: Readonly<Record<string, string>> = {
  '/overview': 'Overall risk and its change, platforms that wait for a decision, use per day, sources and sensors',
  '/platforms': 'Every platform of the last scan: sort, filter, search',
  '/platforms/:name': 'Why it is risky, what was seen, by how many clients, on which days; approve it here',
  '/platforms/:name/clients': 'Who uses it: address, name, network and user, how much, since when. In the audit log',
  '/compare': 'What differs between the scans of two days: new platforms, decisions, use',
  '/clients': 'Find a client by address, host name or user; name networks; import host names',
  '/clients/:client': 'What one client uses, per day, and whose pseudonym it is',
  '/alerts': 'The last alerts, with the delivery to each channel',
  '/alerts/rules': 'What raises alerts: thresholds, mute',
  '/alerts/channels': 'Where alerts are sent: add, test, remove',
  '/alerts/channels/new': 'A webhook, Slack, Teams, mail or syslog',
  '/alerts/dead-letters': 'Messages that were not delivered: send again or delete',
  '/block-lists': 'Links by which firewalls, proxies and DNS servers download what to block',
  '/block-lists/preview': 'What a list blocks now, what is left out and why; download it',
  '/report': 'One page for a manager, to print',
  '/setup-guide': 'Connect a sender: a token, instructions ready to copy, and the first event',
  '/try-file': 'What a capture or a log would show, without storing anything',
  '/sources': 'Each log sender: format, share understood, a redacted line that was not',
  '/sensors': 'Each collector, and the traffic that it could not see',
  '/monitoring-tokens': 'Generate, show once and revoke the tokens of collectors and senders',
  '/monitoring-tokens/:id/verify': 'What arrives with a token, live, or what arrived instead',
  '/scan-frequency': 'How often scans run, and the last ones',
  '/assessments': 'Scores by framework, assessments in progress and completed',
  '/assessments/:id': 'The categories of an assessment; complete the assessment',
  '/assessments/:id/categories/:at': 'Answer each item of a category with its evidence',
  '/frameworks': 'Frameworks of this organization, each from a YAML file; add, replace and remove them',
  '/recommendations': 'What to do first; set the status of each',
  '/api-keys': 'Create, show once and revoke the keys of programs',
  '/api-keys/:id/rotate': 'Replace a key by one with the same scopes',
  '/organization-settings': 'Name, domain, evidence window, and what is kept of clients',
  '/candidates': 'Names of no platform that look like AI services: add one as an own platform, or dismiss it',
  '/own-platforms': 'Platforms of this organization only, by a form or a registry file',
  '/retention': 'How long data is kept, with a preview of what would be deleted',
  '/sign-in-settings': 'The OpenID provider of the organization, and the roles of its groups',
  '/members': 'People and their roles',
  '/audit-log': 'Who changed what, and when',
  '/account': 'Your sessions and your password',
  '/sign-in': 'Name and password',
  '/setup': 'The first owner, an invitation, or a new password, each by a link',
}

/** The picture of a page, without its extension: `/platforms/:name` has `platforms-name`. */
export function pictureOf(path: string): string {
  return path.slice(1).replaceAll('/:', '-').replaceAll('/', '-')
}

/** The pages in the order of the navigation, then the others. */
function pagePaths(): string[] {
  const entries = NAVIGATION.flatMap((group) => group.entries.map(({ path }) => path))
  const all = ROUTES.filter(({ method, path }) => method === 'GET' && path !== '/' && !isFile(path))
  const top = all.map(({ path }) => path).filter((path) => !entries.some((entry) => isBelow(path, entry)))
  const ordered = [...entries, ...top].flatMap((entry) => [
    entry,
    ...all.map(({ path }) => path).filter((path) => path !== entry && isBelow(path, entry)),
  ])
  return [...new Set(ordered)]
}

/** Routes that answer a file, or the options of a script. */
const isFile = (path: string): boolean => /\.\w+$/.test(path) || path.startsWith('/sign-in/')

const isBelow = (path: string, entry: string): boolean => path === entry || path.startsWith(`${entry}/`)

function roleOf(path: string): string {
  const access = ROUTES.find((route) => route.method === 'GET' && route.path === path)?.access ?? 'anyone'
  if (access === 'anyone') return 'anyone'
  return access === 'signed-in' ? 'every member' : ACTIONS[access as Action]
}

/** The table of the console's pages. */
export function consolePagesTable(): string {
  const rows = pagePaths().map((path) => {
    const file = `${pictureOf(path)}-light.webp`
    const hasPicture = existsSync(new URL(PICTURES + file, REPOSITORY))
    return [hasPicture ? `[${code(path)}](../images/console/${file})` : code(path), roleOf(path), ABOUT[path] ?? '']
  })
  return markdownTable(['Page', 'Minimum role', 'What it shows'], rows)
}

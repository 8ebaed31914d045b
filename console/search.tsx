import type { Action } from '../engine/admin/actions.ts'
import { clientList } from '../engine/admin/client-list.ts'
import { storedClient } from '../engine/admin/client-use.ts'
import { groupsOf } from '../engine/scan/group-use.ts'
import { listedDiscovery } from '../engine/scan/listed-discovery.ts'
import { groupPath } from './clients/groups.tsx'
import { FilterSearch, Filters } from './design/list.tsx'
import { NAVIGATION, pagesOf } from './design/navigation.ts'
import { Card, countText, Empty, Lines, PageHead, platformPath } from './design/parts.tsx'
import type { Route } from './http/router.ts'
import type { Visit } from './http/visit.ts'
import { DecisionsByName } from './platforms/decision.tsx'

const PATH = '/search'
const TEXT_MAX = 100
const SHOWN_MAX = 10

/** Settings by the words that people look for, with their pages. */
const SETTINGS: readonly (readonly [name: string, path: string, action: Action])[] = [
  ['Name and domain of the organization', '/organization-settings', 'organization.read'],
  ['Evidence window', '/organization-settings', 'organization.read'],
  ['Pseudonyms, and what is kept of clients', '/organization-settings#clients', 'organization.read'],
  ['Days for which data is kept', '/retention', 'organization.read'],
  ['How often scans run: hourly, daily, weekly', '/scan-frequency', 'organization.read'],
  ['Identity provider, single sign-on and default role', '/sign-in-settings', 'sign-in.read'],
  ['Roles and invitations of members', '/members', 'member.read'],
  ['Alert rules and thresholds', '/alerts/rules', 'alert.read'],
  ['Alert channels: mail, webhook, syslog', '/alerts/channels', 'alert.read'],
  ['Host names, DHCP leases and named networks', '/client-names', 'client.read'],
  ['Departments and teams', '/client-groups', 'client.read'],
  ['Password, passkeys and sessions', '/account', 'session.end'],
]

interface Result {
  readonly name: string
  readonly href: string
  readonly about: string
}

interface Results {
  readonly title: string
  readonly shown: readonly Result[]
  readonly total: number
  /** The list with all of them. */
  readonly all: string
}

/** Searches platforms, clients, groups, pages and settings. Who was looked up is in the audit log. */
export const SEARCH_ROUTE: Route = {
  method: 'GET',
  path: PATH,
  access: 'signed-in',
  handle: async (visit) => {
    const { site, organization, request } = visit
    const text = (request.query.get('q') ?? '').trim().slice(0, TEXT_MAX)
    const reads = text !== '' && visit.may('client.read')
    if (reads) await visit.change('client.read', { client: storedClient(site.store, organization, text) })
    const results = text === '' ? [] : site.store.environment.read(() => resultsOf(visit, text, reads))
    return visit.page('Search', PATH, Search({ text, results }))
  },
}

function resultsOf(visit: Visit, text: string, readsClients: boolean): Results[] {
  const words = text.toLowerCase()
  const has = (name: string): boolean => name.toLowerCase().includes(words)
  const query = new URLSearchParams({ q: text })
  const entries = NAVIGATION.flatMap((group) => group.entries.map((entry) => ({ group: group.name, entry })))
  const pages = entries.flatMap(({ group, entry }) =>
    pagesOf(entry)
      .filter(({ name, action }) => visit.may(action) && has(name))
      .map(({ name, path }) => ({ name, href: path, about: group })),
  )
  const settings = SETTINGS.filter(([name, , action]) => visit.may(action) && has(name))
  const clients = readsClients ? clientsOf(visit, text) : []
  const groups = readsClients ? groupsOf(visit.site.store, visit.organization).all.filter(({ name }) => has(name)) : []
  const found: Results[] = [
    part('Platforms', visit.may('discovery.read') ? platformsOf(visit, has) : [], `/platforms?${query}`),
    part('Clients', clients, `/clients?${query}`),
    part(
      'Groups',
      groups.map(({ name, isNetwork }) => ({ name, href: groupPath(name), about: isNetwork ? 'network' : 'group' })),
      '/client-groups',
    ),
    part('Pages', pages, ''),
    part(
      'Settings',
      settings.map(([name, href]) => ({ name, href, about: '' })),
      '',
    ),
  ]
  return found.filter(({ total }) => total > 0)
}

function part(title: string, all: readonly Result[], path: string): Results {
  return { title, shown: all.slice(0, SHOWN_MAX), total: all.length, all: path }
}

/** Those of the last scan first, then the others of the registry. */
function platformsOf(visit: Visit, has: (name: string) => boolean): Result[] {
  const { site, organization } = visit
  const decisions = new DecisionsByName(visit)
  const resultOf = (name: string, about: string): Result => ({
    name,
    href: platformPath(name),
    about,
  })
  const listed = listedDiscovery(site.store, organization).platforms
  const seen = new Set(listed.map(({ name }) => name))
  const registered = site.registry.catalogOf(organization.id).platforms
  return [
    ...listed
      .filter(({ name, vendor }) => has(name) || has(vendor))
      .map((each) => resultOf(each.name, `${each.vendor}, risk ${each.risk}, ${decisions.stateOf(each)}`)),
    ...registered
      .filter(({ name, vendor }) => !seen.has(name) && (has(name) || has(vendor)))
      .map(({ name, vendor }) => resultOf(name, `${vendor}, not seen`)),
  ]
}

function clientsOf({ site, organization, nowMs }: Visit, search: string): Result[] {
  const { platforms } = site.registry.catalogOf(organization.id)
  return clientList(site.store, organization, platforms, { search }, nowMs).clients.map(({ client, isUser }) => ({
    name: client,
    href: `/clients/${encodeURIComponent(client)}`,
    about: isUser ? 'user' : 'address',
  }))
}

function Search({ text, results }: { readonly text: string; readonly results: readonly Results[] }) {
  return (
    <>
      <PageHead title="Search" about="Platforms, clients, groups, pages and settings" />
      <Filters action={PATH}>
        <FilterSearch value={text} />
      </Filters>
      {text !== '' && results.length === 0 && (
        <Empty title={`Nothing matches ${JSON.stringify(text)}`}>
          <p class="muted">Searched all that your role may see. Names of clients are searched in parts.</p>
        </Empty>
      )}
      {results.map(({ title, shown, total, all }) => (
        <Card
          key={title}
          title={title}
          note={total > shown.length && all !== '' ? <a href={all}>all {countText(total)}</a> : countText(total)}
        >
          <Lines rows={shown.map(({ name, href, about }) => [<a href={href}>{name}</a>, about])} />
        </Card>
      ))}
      <label class="check small muted" data-keys hidden>
        <input type="checkbox" checked />
        <span>
          Keys: <kbd>/</kbd> search, on every page
        </span>
      </label>
    </>
  )
}

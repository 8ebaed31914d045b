import type { Action } from '../../engine/admin/actions.ts'

interface NavigationPage {
  readonly path: string
  readonly name: string
  /** The entry is visible only to members whose role allows this action. */
  readonly action: Action
}

interface NavigationEntry extends NavigationPage {
  /** Pages with tabs next to that of the entry, so that the menu stays short. */
  readonly tabs?: readonly NavigationPage[]
}

interface NavigationGroup {
  readonly name: string
  readonly entries: readonly NavigationEntry[]
}

/** The navigation of every page: at most 14 entries. Each entry and tab has a route in routes.ts. */
export const NAVIGATION: readonly NavigationGroup[] = [
  {
    name: 'Discovery',
    entries: [
      {
        ...{ path: '/overview', name: 'Overview', action: 'discovery.read' },
        tabs: [{ path: '/report', name: 'Report', action: 'discovery.read' }],
      },
      {
        ...{ path: '/platforms', name: 'Platforms', action: 'discovery.read' },
        tabs: [
          { path: '/own-platforms', name: 'Custom platforms', action: 'discovery.read' },
          { path: '/candidates', name: 'Candidates', action: 'discovery.read' },
        ],
      },
      {
        ...{ path: '/clients', name: 'Clients', action: 'client.read' },
        tabs: [
          { path: '/client-groups', name: 'Groups', action: 'client.read' },
          { path: '/client-names', name: 'Names and networks', action: 'client.read' },
        ],
      },
      {
        ...{ path: '/sources', name: 'Sources', action: 'source.read' },
        tabs: [
          { path: '/sensors', name: 'Sensors', action: 'source.read' },
          { path: '/setup-guide', name: 'Setup', action: 'token.read' },
          { path: '/try-file', name: 'Try a file', action: 'file.try' },
        ],
      },
      { path: '/monitoring-tokens', name: 'Monitoring Tokens', action: 'token.read' },
      { path: '/scan-frequency', name: 'Scan Frequency', action: 'organization.read' },
    ],
  },
  {
    name: 'Response',
    entries: [
      { path: '/alerts', name: 'Alerts', action: 'alert.read' },
      { path: '/block-lists', name: 'Block lists', action: 'block-list-link.read' },
    ],
  },
  {
    name: 'Assessment',
    entries: [
      { path: '/assessments', name: 'Assessments', action: 'assessment.read' },
      { path: '/recommendations', name: 'Recommendations', action: 'recommendation.read' },
    ],
  },
  {
    name: 'Organization Settings',
    entries: [
      {
        ...{ path: '/organization-settings', name: 'Organization', action: 'organization.read' },
        tabs: [
          { path: '/retention', name: 'Retention', action: 'organization.read' },
          { path: '/sign-in-settings', name: 'Sign-in', action: 'sign-in.read' },
        ],
      },
      { path: '/api-keys', name: 'API Keys', action: 'api-key.read' },
      { path: '/members', name: 'Members', action: 'member.read' },
      { path: '/audit-log', name: 'Audit log', action: 'audit.read' },
    ],
  },
]

const ENTRIES = NAVIGATION.flatMap(({ entries }) => entries)

/** All pages of an entry: its own, and its tabs. */
export function pagesOf({ path, name, action, tabs = [] }: NavigationEntry): readonly NavigationPage[] {
  return [{ path, name, action }, ...tabs]
}

/** The entry with this page. */
export function entryOf(path: string): NavigationEntry | undefined {
  return ENTRIES.find((entry) => pagesOf(entry).some((page) => page.path === path))
}

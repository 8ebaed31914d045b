import type { ComponentChildren } from 'preact'
import type { Action } from '../../engine/admin/actions.ts'
import type { Role } from '../../engine/store/members.ts'
import type { Organization } from '../../engine/store/organizations.ts'
import { assetPath } from '../assets.ts'
import { entryOf, NAVIGATION, pagesOf } from './navigation.ts'

export type Theme = 'light' | 'dark' | undefined

interface DocumentProps {
  readonly title: string
  readonly theme: Theme
  readonly class?: string
  /** The browser requests this path immediately. */
  readonly refreshTo?: string | undefined
  /** A browser without scripts loads the page again after this time. */
  readonly reloadSeconds?: number | undefined
  readonly children: ComponentChildren
}

/** The outermost elements of every page. */
function Document({ title, theme, class: name, refreshTo, reloadSeconds, children }: DocumentProps) {
  return (
    <html lang="en" data-theme={theme}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content={theme ?? 'light dark'} />
        {refreshTo !== undefined && <meta http-equiv="refresh" content={`0;url=${refreshTo}`} />}
        {reloadSeconds !== undefined && (
          <noscript>
            <meta http-equiv="refresh" content={`${reloadSeconds}`} />
          </noscript>
        )}
        <title>{title}</title>
        <link rel="icon" href={assetPath('icon.svg')} type="image/svg+xml" />
        <link rel="stylesheet" href={assetPath('console.css')} />
      </head>
      <body class={name}>
        {children}
        <script type="module" src={assetPath('console.js')} />
      </body>
    </html>
  )
}

interface LayoutProps {
  readonly title: string
  /** The path of the navigation entry of this page. */
  readonly here: string
  readonly theme: Theme
  readonly path: string
  readonly userName: string
  readonly role: Role
  readonly organization: Organization
  readonly organizations: readonly Organization[]
  readonly may: (action: Action) => boolean
  readonly reloadSeconds?: number | undefined
  readonly children: ComponentChildren
}

/** A page for a signed-in user. */
export function Layout(props: LayoutProps) {
  const { title, theme, organization, reloadSeconds, children } = props
  return (
    <Document title={`${title} · ${organization.name}`} theme={theme} class="framed" reloadSeconds={reloadSeconds}>
      <a class="skip" href="#content">
        Skip to content
      </a>
      <header class="rail">
        <a class="brand" href="/">
          <Mark />
          {organization.name}
        </a>
        <Menu {...props} id="rail" />
      </header>
      {/* The same for narrow screens. One of the two is hidden: Firefox ESR 140 cannot show a closed <details>. */}
      <header class="bar-menu">
        <details>
          <summary>
            <span class="brand">
              <Mark />
              {organization.name}
            </span>
            <span class="muted">Menu</span>
          </summary>
          <Menu {...props} id="menu" />
        </details>
      </header>
      <main id="content">
        <Tabs {...props} />
        {children}
      </main>
    </Document>
  )
}

/** The pages of the same entry of the menu. */
function Tabs({ here, path, may }: LayoutProps) {
  const entry = entryOf(here)
  const isTab = path.split('?')[0] === here
  const pages = entry === undefined || !isTab ? [] : pagesOf(entry).filter(({ action }) => may(action))
  if (entry === undefined || pages.length < 2) return null
  return (
    <nav class="tabs" aria-label={entry.name}>
      {pages.map((page) => (
        <a key={page.path} href={page.path} aria-current={page.path === here ? 'page' : undefined}>
          {page.name}
        </a>
      ))}
    </nav>
  )
}

/** Navigation and account. `id` distinguishes the two menus of a page. */
function Menu(props: LayoutProps & { readonly id: string }) {
  const { here, may } = props
  const current = entryOf(here)?.path
  return (
    <>
      <search>
        <form class="search" method="get" action="/search">
          <input
            name="q"
            type="search"
            aria-label="Search everything"
            placeholder="Search"
            maxLength={100}
            data-key="/"
          />
        </form>
      </search>
      <nav aria-label="Main">
        {NAVIGATION.map(({ name, entries }) => {
          const shown = entries.filter(({ action }) => may(action))
          return shown.length === 0 ? null : (
            <section key={name}>
              <h2>{name}</h2>
              <ul>
                {shown.map((entry) => (
                  <li key={entry.path}>
                    <a
                      href={entry.path}
                      aria-current={entry.path === current ? (current === here ? 'page' : 'true') : undefined}
                    >
                      {entry.name}
                    </a>
                  </li>
                ))}
              </ul>
            </section>
          )
        })}
      </nav>
      <Account {...props} />
    </>
  )
}

const ROLE_NAMES: Readonly<Record<Role, string>> = {
  viewer: 'Viewer',
  member: 'Member',
  admin: 'Admin',
  owner: 'Owner',
}

/** The signed-in user, the organization, and the theme. */
function Account(props: LayoutProps & { readonly id: string }) {
  const { id: menu, userName, role, organization, organizations, theme, path } = props
  return (
    <div class="account">
      <p>
        <a href="/account">
          <strong>{userName}</strong>
        </a>
        <span class="muted">{ROLE_NAMES[role]}</span>
      </p>
      {organizations.length > 1 && (
        <form method="post" action="/organization" class="inline">
          <label class="visually-hidden" for={`${menu}-organization`}>
            Organization
          </label>
          <select id={`${menu}-organization`} name="organization">
            {organizations.map(({ id, name }) => (
              <option key={id} value={id} selected={id === organization.id}>
                {name}
              </option>
            ))}
          </select>
          <button type="submit">Switch</button>
        </form>
      )}
      <div class="row">
        <ThemeForm theme={theme} path={path} />
        <form method="post" action="/sign-out">
          <button class="quiet" type="submit">
            Sign out
          </button>
        </form>
      </div>
    </div>
  )
}

const THEMES = [
  ['system', 'System'],
  ['light', 'Light'],
  ['dark', 'Dark'],
] as const

/** A button that switches to the next theme: system, light, dark. */
function ThemeForm({ theme, path }: { readonly theme: Theme; readonly path: string }) {
  const at = THEMES.findIndex(([id]) => id === (theme ?? 'system'))
  const [next] = THEMES[(at + 1) % THEMES.length] ?? THEMES[0]
  const name = THEMES[at]?.[1] ?? 'System'
  return (
    <form method="post" action="/theme">
      <input type="hidden" name="to" value={path} />
      <button class="quiet" type="submit" name="theme" value={next} aria-label={`Theme: ${name}. Change to ${next}`}>
        Theme: {name}
      </button>
    </form>
  )
}

interface PlainPageProps {
  readonly title: string
  readonly theme: Theme
  readonly path: string
  readonly refreshTo?: string
  readonly children: ComponentChildren
}

/** A page for a visitor who is not signed in: one centered card. */
export function PlainPage({ title, theme, path, refreshTo, children }: PlainPageProps) {
  return (
    <Document title={`${title} · Security Posture Service`} theme={theme} class="plain" refreshTo={refreshTo}>
      <main id="content">
        <p class="brand">
          <Mark />
          Security Posture Service
        </p>
        <section class="card">
          <div class="body">{children}</div>
        </section>
      </main>
      <footer>
        <ThemeForm theme={theme} path={path} />
      </footer>
    </Document>
  )
}

function Mark() {
  return (
    <svg class="mark" viewBox="0 0 20 20" aria-hidden="true">
      <circle cx="10" cy="10" r="8" class="ring" />
      <circle cx="13" cy="8" r="3" class="dot" />
    </svg>
  )
}

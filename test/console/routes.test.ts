import t from 'tap'
import { ROUTES } from '../../console/routes.ts'
import { serveConsole } from '../support/console.ts'
import { crawl, routesOf } from '../support/console-crawl.ts'
import { plainWords, populate } from '../support/console-data.ts'
import { makeOrganization } from '../support/store.ts'

/** Routes to which no link leads, and why. */
const UNLINKED: Readonly<Record<string, string>> = {
  'POST /setup/account': 'the form that answers POST /setup',
  'GET /setup-guide/certificate.pem': 'linked if the ingest ports have a self-signed certificate',
  'GET /sign-in/callback/:organization': 'where the identity provider sends the browser',
  'POST /sign-in-settings/edit': 'asks for a confirmation, if the last one is too old, before the form',
  'POST /sign-in/confirm': 'a confirmation by the identity provider',
  'GET /sign-in/continue': 'what follows that confirmation',
  'POST /alerts/channels/open': 'asks for a confirmation, if the last one is too old, before the form',
  'POST /assessments/:id/update': 'on an assessment of an earlier release',
  'POST /decisions/undo': 'for ten minutes after a decision of the member',
  'POST /clients/:client/reveal': 'on the page of a pseudonym',
  'POST /try-file/add': 'below the result of a log that was tried',
  'POST /account/passkeys': 'the form that answers POST /account/passkeys/new',
}

t.test('every page and form is reached from the navigation, and no link leads nowhere', async (t) => {
  const site = await serveConsole(t, { hasOrigin: true })
  const owner = populate(site, site.organization, plainWords())
  site.signIn('owner', 'owner', makeOrganization(site, 'Globex'))
  const inside = await crawl(owner, ['/'])
  t.same(inside.strays, [])
  for (const [path, { status }] of inside.answers) t.ok(status === 200 || status === 303, `${path}: ${status}`)
  const outside = await crawl(site.browser(), ['/sign-in', '/setup'])
  t.same(outside.strays, [])
  const reached = new Set([...routesOf(inside).keys(), ...routesOf(outside).keys()])
  // Only a token with senders links it, and the crawl may visit another one: verification.test.ts.
  reached.add('GET /monitoring-tokens/:id/verify.csv')
  const missing = ROUTES.map(({ method, path }) => `${method} ${path}`).filter((route) => !reached.has(route))
  t.same(missing.toSorted(), Object.keys(UNLINKED).toSorted())
})

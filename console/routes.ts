import { csvOf, sorted, sortingOf } from './design/table.tsx'
import { csvAnswer, isLocalPath, redirect } from './http/answer.ts'
import { clearCookie, setCookie } from './http/cookies.ts'
import { form, openForm, page, type Route } from './http/router.ts'
import { PLATFORMS_SORTING, Platforms, platformColumns } from './pages/platforms.tsx'
import { API_KEY_ROUTES } from './routes/api-keys.ts'
import { ASSESSMENT_ROUTES } from './routes/assessments.ts'
import { AUDIT_ROUTES } from './routes/audit.ts'
import { INTAKE_ROUTES } from './routes/intake.ts'
import { MEMBER_ROUTES } from './routes/members.ts'
import { OVERVIEW_ROUTES } from './routes/overview.ts'
import { PLATFORM_ROUTES } from './routes/platform.ts'
import { RECOMMENDATION_ROUTES } from './routes/recommendations.ts'
import { SCAN_FREQUENCY_ROUTES } from './routes/scan-frequency.ts'
import { TOKEN_ROUTES } from './routes/tokens.ts'
import { platformsView } from './views/platforms.ts'

const THEME_SECONDS = 365 * 86_400

/** Every address of the console, and the action that a member's role must allow. */
export const ROUTES: readonly Route[] = [
  page('/', 'signed-in', () => redirect('/overview')),

  page('/platforms', 'discovery.read', (visit) => {
    const { nowMs, request } = visit
    const sorting = sortingOf(platformColumns(nowMs), request.query, PLATFORMS_SORTING)
    const view = platformsView(visit)
    return visit.page('Platforms', '/platforms', Platforms({ view, sorting, query: request.query, nowMs }))
  }),
  page('/platforms.csv', 'discovery.read', (visit) => {
    const columns = platformColumns(visit.nowMs)
    const sorting = sortingOf(columns, visit.request.query, PLATFORMS_SORTING)
    return csvAnswer('platforms.csv', csvOf(columns, sorted(platformsView(visit).rows, columns, sorting)))
  }),

  openForm('/theme', ({ request }) => {
    const theme = request.fields.text('theme')
    const to = request.fields.text('to')
    const cookie =
      theme === 'light' || theme === 'dark'
        ? setCookie('theme', theme, { seconds: THEME_SECONDS })
        : clearCookie('theme')
    return redirect(isLocalPath(to) ? to : '/', [cookie])
  }),
  form('/organization', 'signed-in', async ({ site, request, identity }) => {
    const organizationId = request.fields.text('organization')
    if (identity.organizations.some(({ id }) => id === organizationId)) {
      await site.changes.account('session.organization', { hash: identity.session.hash, organizationId })
    }
    return redirect('/')
  }),
  ...OVERVIEW_ROUTES,
  ...PLATFORM_ROUTES,
  ...INTAKE_ROUTES,
  ...TOKEN_ROUTES,
  ...SCAN_FREQUENCY_ROUTES,
  ...ASSESSMENT_ROUTES,
  ...RECOMMENDATION_ROUTES,
  ...API_KEY_ROUTES,
  ...MEMBER_ROUTES,
  ...AUDIT_ROUTES,
]

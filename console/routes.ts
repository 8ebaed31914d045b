import { CLIENT_ROUTES } from './clients/routes.ts'
import { isLocalPath, redirect } from './http/answer.ts'
import { clearCookie, setCookie } from './http/cookies.ts'
import { openForm, page, type Route } from './http/router.ts'
import { ACCOUNT_ROUTES } from './routes/account.ts'
import { ALERT_CHANNEL_ROUTES } from './routes/alert-channels.ts'
import { ALERT_ROUTES } from './routes/alerts.ts'
import { API_KEY_ROUTES } from './routes/api-keys.ts'
import { ASSESSMENT_ROUTES, FRAMEWORK_ROUTES } from './routes/assessments.ts'
import { BLOCK_LIST_ROUTES } from './routes/block-lists.ts'
import { CANDIDATE_ROUTES } from './routes/candidates.ts'
import { COMPARISON_ROUTES } from './routes/comparison.ts'
import { DISCOVERY_ROUTES } from './routes/discovery.ts'
import { MEMBER_ROUTES } from './routes/members.ts'
import { OIDC_ROUTES } from './routes/oidc.ts'
import { AUDIT_ROUTES, ORGANIZATION_ROUTES, RETENTION_ROUTES, SCAN_FREQUENCY_ROUTES } from './routes/organization.ts'
import { OVERVIEW_ROUTES } from './routes/overview.ts'
import { OWN_PLATFORM_ROUTES } from './routes/own-platforms.ts'
import { PASSKEY_ROUTES } from './routes/passkeys.ts'
import { PLATFORM_ROUTES } from './routes/platform.ts'
import { RECOMMENDATION_ROUTES } from './routes/recommendations.ts'
import { REPORT_ROUTES } from './routes/report.ts'
import { SETUP_GUIDE_ROUTES } from './routes/setup-guide.ts'
import { SIGN_IN_ROUTES } from './routes/sign-in.ts'
import { SIGN_IN_SETTINGS_ROUTES } from './routes/sign-in-settings.ts'
import { SOURCES_ROUTES } from './routes/sources.ts'
import { TOKEN_ROUTES, VERIFICATION_ROUTES } from './routes/tokens.ts'
import { TRY_FILE_ROUTES } from './routes/try-file.ts'
import { SEARCH_ROUTE } from './search.tsx'

const THEME_SECONDS = 365 * 86_400

/** Every path of the console, with the action that a member's role must allow. */
export const ROUTES: readonly Route[] = [
  page('/', 'signed-in', () => redirect('/overview')),
  openForm('/theme', ({ request }) => {
    const theme = request.fields.text('theme')
    const to = request.fields.text('to')
    const cookie =
      theme === 'light' || theme === 'dark'
        ? setCookie('theme', theme, { seconds: THEME_SECONDS })
        : clearCookie('theme')
    return redirect(isLocalPath(to) ? to : '/', [cookie])
  }),
  ...SIGN_IN_ROUTES,
  ...PASSKEY_ROUTES,
  ...OIDC_ROUTES,
  ...ACCOUNT_ROUTES,
  SEARCH_ROUTE,
  ...OVERVIEW_ROUTES,
  ...DISCOVERY_ROUTES,
  ...PLATFORM_ROUTES,
  ...COMPARISON_ROUTES,
  ...CLIENT_ROUTES,
  ...SOURCES_ROUTES,
  ...SETUP_GUIDE_ROUTES,
  ...TOKEN_ROUTES,
  ...TRY_FILE_ROUTES,
  ...VERIFICATION_ROUTES,
  ...SCAN_FREQUENCY_ROUTES,
  ...ASSESSMENT_ROUTES,
  ...FRAMEWORK_ROUTES,
  ...RECOMMENDATION_ROUTES,
  ...REPORT_ROUTES,
  ...ALERT_ROUTES,
  ...ALERT_CHANNEL_ROUTES,
  ...BLOCK_LIST_ROUTES,
  ...ORGANIZATION_ROUTES,
  ...API_KEY_ROUTES,
  ...MEMBER_ROUTES,
  ...OWN_PLATFORM_ROUTES,
  ...CANDIDATE_ROUTES,
  ...RETENTION_ROUTES,
  ...SIGN_IN_SETTINGS_ROUTES,
  ...AUDIT_ROUTES,
]

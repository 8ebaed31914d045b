import { ACCOUNT_ROUTES } from './account/account.tsx'
import { OIDC_ROUTES } from './account/oidc-routes.ts'
import { PASSKEY_ROUTES } from './account/passkey-routes.ts'
import { SIGN_IN_ROUTES } from './account/sign-in-routes.ts'
import { ALERT_ROUTES } from './alerts/alerts.tsx'
import { CHANNEL_ROUTES } from './alerts/channels.tsx'
import { NEW_CHANNEL_ROUTES } from './alerts/new-channel.tsx'
import { RULE_ROUTES } from './alerts/rules.tsx'
import { ASSESSMENT_ROUTES } from './assessments/assessment.tsx'
import { FRAMEWORK_ROUTES } from './assessments/frameworks.tsx'
import { RECOMMENDATION_ROUTES } from './assessments/recommendations.tsx'
import { ITEM_ROUTES } from './assessments/routes.ts'
import { BLOCK_LIST_ROUTES } from './block-lists/block-lists.tsx'
import { CLIENT_ROUTES } from './clients/client.tsx'
import { GROUP_ROUTES } from './clients/groups.tsx'
import { CLIENTS_ROUTES } from './clients/list.tsx'
import { CLIENT_NAME_ROUTES } from './clients/names.tsx'
import { PLATFORM_CLIENT_ROUTES } from './clients/of-platform.tsx'
import { isLocalPath, redirect } from './http/answer.ts'
import { clearCookie, setCookie } from './http/cookies.ts'
import { openForm, page, type Route } from './http/router.ts'
import { AUDIT_ROUTES } from './organization/audit.tsx'
import { MEMBER_ROUTES } from './organization/members.tsx'
import { ORGANIZATION_ROUTES } from './organization/organization.tsx'
import { RETENTION_ROUTES } from './organization/retention.tsx'
import { SCAN_FREQUENCY_ROUTES } from './organization/scan-frequency.tsx'
import { SIGN_IN_SETTINGS_ROUTES } from './organization/sign-in-settings.tsx'
import { OVERVIEW_ROUTES } from './overview/overview.tsx'
import { REPORT_ROUTES } from './overview/report.tsx'
import { CANDIDATE_ROUTES } from './platforms/candidates.tsx'
import { COMPARISON_ROUTES } from './platforms/comparison.tsx'
import { DISCOVERY_ROUTES } from './platforms/list.tsx'
import { MANAGER_ROUTES } from './platforms/managers.tsx'
import { OWN_PLATFORM_ROUTES } from './platforms/own-platforms.tsx'
import { PLATFORM_ROUTES } from './platforms/platform.tsx'
import { SAVED_VIEW_ROUTES } from './saved-views.ts'
import { SEARCH_ROUTE } from './search.tsx'
import { API_KEY_ROUTES } from './secrets/api-keys.tsx'
import { TOKEN_ROUTES } from './secrets/tokens.tsx'
import { SETUP_GUIDE_ROUTES } from './sources/setup-guide.tsx'
import { SOURCES_ROUTES } from './sources/sources.tsx'
import { TRY_FILE_ROUTES } from './sources/try-file.tsx'
import { VERIFICATION_ROUTES } from './sources/verification.tsx'

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
  ...SAVED_VIEW_ROUTES,
  ...OVERVIEW_ROUTES,
  ...DISCOVERY_ROUTES,
  ...MANAGER_ROUTES,
  ...PLATFORM_ROUTES,
  ...COMPARISON_ROUTES,
  ...CLIENTS_ROUTES,
  ...CLIENT_ROUTES,
  ...PLATFORM_CLIENT_ROUTES,
  ...GROUP_ROUTES,
  ...CLIENT_NAME_ROUTES,
  ...SOURCES_ROUTES,
  ...SETUP_GUIDE_ROUTES,
  ...TOKEN_ROUTES,
  ...TRY_FILE_ROUTES,
  ...VERIFICATION_ROUTES,
  ...SCAN_FREQUENCY_ROUTES,
  ...ITEM_ROUTES,
  ...ASSESSMENT_ROUTES,
  ...FRAMEWORK_ROUTES,
  ...RECOMMENDATION_ROUTES,
  ...REPORT_ROUTES,
  ...ALERT_ROUTES,
  ...RULE_ROUTES,
  ...CHANNEL_ROUTES,
  ...NEW_CHANNEL_ROUTES,
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

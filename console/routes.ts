import { isLocalPath, redirect } from './http/answer.ts'
import { clearCookie, setCookie } from './http/cookies.ts'
import { openForm, page, type Route } from './http/router.ts'
import { ACCOUNT_ROUTES } from './routes/account.ts'
import { DISCOVERY_ROUTES } from './routes/discovery.ts'
import { SIGN_IN_ROUTES } from './routes/sign-in.ts'

const THEME_SECONDS = 365 * 86_400

/** Every address of the console, and the action that a member's role must allow. */
export const ROUTES: readonly Route[] = [
  page('/', 'signed-in', () => redirect('/platforms')),
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
  ...ACCOUNT_ROUTES,
  ...DISCOVERY_ROUTES,
]

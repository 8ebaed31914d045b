import { type Fields, Hidden } from '../design/form.tsx'
import { PlainPage } from '../design/layout.tsx'
import { PageHead } from '../design/parts.tsx'
import { type Answer, pageAnswer } from './answer.ts'
import { type Guest, Visit } from './visit.ts'

/** A rejected request. */
export interface Refusal {
  readonly status: number
  readonly message: string
  /** What the visitor typed, to be sent again after a sign-in. */
  readonly kept?: Fields
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'This request cannot be understood',
  401: 'Sign in again',
  403: 'Not allowed',
  404: 'Page not found',
  405: 'Not possible here',
  408: 'Too slow',
  409: 'Not possible now',
  413: 'Too large',
  415: 'Unknown kind of form',
  429: 'Too many attempts',
  502: 'The identity provider failed',
  503: 'Not available now',
}

/** A page with an error message and a link back: for visitors, to `back`. */
export function errorAnswer(guest: Guest, { status, message, kept = [] }: Refusal, back = '/sign-in'): Answer {
  const title = TITLES[status] ?? 'Internal error'
  const { identity, site, request } = guest
  if (identity !== undefined) {
    const content = (
      <>
        <PageHead title={title} about={message} />
        <p>
          <a class="button" href="/">
            Back to the start
          </a>
        </p>
      </>
    )
    return new Visit(site, request, identity).page(title, '', content, { status })
  }
  const document = (
    <PlainPage title={title} theme={guest.theme} path="/sign-in">
      <h1>{title}</h1>
      <p>{message}</p>
      {kept.length > 0 && (
        <form class="stack" method="post" action={request.path}>
          <p>
            Nothing is lost.{' '}
            <a href="/sign-in" target="_blank" rel="noopener">
              Sign in in another tab
            </a>
            , then send what you typed again.
          </p>
          <Hidden fields={kept} />
          <button type="submit">Send again</button>
        </form>
      )}
      <p>
        <a class="button" href={back}>
          {back === '/sign-in' ? 'Go to sign-in' : 'Back'}
        </a>
      </p>
    </PlainPage>
  )
  // RFC 9110 §15.5.2. Browsers ignore a scheme that they do not know, so none asks for a password.
  return pageAnswer(document, { status, fields: status === 401 ? ['www-authenticate', 'Cookie'] : [] })
}

/**
 * Makes the browser request the same page again. A request by a link on another site, such as
 * webmail, has no SameSite=Strict cookie. The second request comes from this page, so it has the
 * cookie.
 */
export function refreshAnswer(path: string): Answer {
  const document = (
    <PlainPage title="Opening" theme={undefined} path="/sign-in" refreshTo={path}>
      <h1>Opening</h1>
      <p>
        <a class="button" href={path}>
          Continue
        </a>
      </p>
    </PlainPage>
  )
  return pageAnswer(document)
}

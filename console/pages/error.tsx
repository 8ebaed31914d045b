import { PlainPage } from '../design/layout.tsx'
import { PageHead } from '../design/parts.tsx'
import { type Answer, pageAnswer } from '../http/answer.ts'
import { type Guest, Visit } from '../http/visit.ts'

/** A rejected request. */
export interface Refusal {
  readonly status: number
  readonly message: string
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
export function errorAnswer(guest: Guest, { status, message }: Refusal, back = '/sign-in'): Answer {
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
      <p>
        <a class="button" href={back}>
          {back === '/sign-in' ? 'Go to sign-in' : 'Back'}
        </a>
      </p>
    </PlainPage>
  )
  return pageAnswer(document, { status })
}

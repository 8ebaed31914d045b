import { PlainPage } from '../design/layout.tsx'
import { type Answer, pageAnswer } from '../http/answer.ts'

/**
 * Makes the browser ask for the same page again. A link on another site, as in an e-mail, brings no
 * cookie of SameSite=Strict; the second request comes from this page, so it does.
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

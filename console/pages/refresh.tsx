import { PlainPage } from '../design/layout.tsx'
import { type Answer, pageAnswer } from '../http/answer.ts'

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

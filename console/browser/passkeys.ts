/* Passkeys: the part of WebAuthn that only browsers can do. */

type Ceremony = 'create' | 'get'

/**
 * How long the browser offers passkeys in the name field before it asks for a new challenge, which
 * is valid for five minutes.
 */
const OFFER_MS = 4 * 60_000

/** Stops the offer in the name field, because a page can run one ceremony at a time. */
let offer = new AbortController()

for (const form of document.querySelectorAll<HTMLFormElement>('form[data-passkey]')) {
  // Chrome 129, Firefox 119, Safari 18.4.
  if (!('PublicKeyCredential' in window && 'parseCreationOptionsFromJSON' in PublicKeyCredential)) {
    showPasskeyError(form, 'This browser is too old for passkeys, or the connection is not secure')
    continue
  }
  form.hidden = false
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    offer.abort()
    runPasskeyForm(form).catch((error: unknown) => showPasskeyError(form, passkeyErrorText(error)))
  })
  if (form.dataset['optionsFrom'] !== undefined) offerPasskeys(form)
}

/** Asks the authenticator, and posts its response with the form. */
async function runPasskeyForm(form: HTMLFormElement): Promise<void> {
  showPasskeyError(form, '')
  const ceremony: Ceremony = form.dataset['passkey'] === 'create' ? 'create' : 'get'
  post(form, await askAuthenticator(ceremony, await optionsOf(form)))
}

/** Offers passkeys in the name field while the user types (conditional mediation). */
async function offerPasskeys(form: HTMLFormElement): Promise<void> {
  if (!(await PublicKeyCredential.isConditionalMediationAvailable?.())) return
  offer = new AbortController()
  const { signal } = offer
  const renewal = setTimeout(() => {
    offer.abort()
    offerPasskeys(form)
  }, OFFER_MS)
  try {
    post(form, await askAuthenticator('get', await optionsOf(form), { mediation: 'conditional', signal }))
  } catch {
    // The button still works, and says why if it does not.
    if (!signal.aborted) clearTimeout(renewal)
  }
}

/** The options are in the page, or at an address if the page can be older than its challenge. */
async function optionsOf(form: HTMLFormElement): Promise<unknown> {
  const { optionsFrom, options = '' } = form.dataset
  if (optionsFrom === undefined) return JSON.parse(options)
  const answer = await fetch(optionsFrom)
  if (!answer.ok) throw new Error(`The console answered ${answer.status}`)
  return answer.json()
}

async function askAuthenticator(
  ceremony: Ceremony,
  options: unknown,
  more: CredentialRequestOptions = {},
): Promise<string> {
  const credential =
    ceremony === 'create'
      ? await navigator.credentials.create({
          publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(
            options as PublicKeyCredentialCreationOptionsJSON,
          ),
        })
      : await navigator.credentials.get({
          publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options as PublicKeyCredentialRequestOptionsJSON),
          ...more,
        })
  if (credential === null) throw new Error('The browser returned no passkey')
  return JSON.stringify(credential)
}

function post(form: HTMLFormElement, response: string): void {
  const field = form.querySelector<HTMLInputElement>('input[data-passkey-response]')
  if (field === null) return
  field.value = response
  form.submit()
}

function showPasskeyError(form: HTMLFormElement, text: string): void {
  const place = form.querySelector<HTMLElement>('[data-passkey-error]')
  if (place === null) return
  place.textContent = text
  place.hidden = text === ''
}

function passkeyErrorText(error: unknown): string {
  const { name, message } = error instanceof Error ? error : { name: '', message: String(error) }
  if (name === 'NotAllowedError') return 'Canceled, or no passkey was chosen in time. Try again'
  if (name === 'InvalidStateError') return 'This device has a passkey for your account already'
  if (name === 'SecurityError')
    return 'The browser allows no passkeys here: the host name or certificate is not trusted'
  return message
}

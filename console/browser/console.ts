/* Additions for browsers that run scripts. Every page works without the script. */

/** Hides the table rows that do not contain the text of a filter field. */
for (const input of document.querySelectorAll<HTMLInputElement>('input[data-filters]')) {
  const table = document.getElementById(input.dataset['filters'] ?? '')
  const count = document.getElementById(`${input.dataset['filters']}-count`)
  const rows = [...(table?.querySelectorAll('tbody tr') ?? [])].map((row) => {
    return { row: row as HTMLElement, text: (row.textContent ?? '').toLowerCase() }
  })
  input.addEventListener('input', () => {
    const wanted = input.value.trim().toLowerCase()
    let shown = 0
    for (const { row, text } of rows) {
      row.hidden = !text.includes(wanted)
      if (!row.hidden) shown++
    }
    if (count !== null) count.textContent = `${shown} of ${rows.length}`
  })
}

/** Selects all visible rows of a table, and shows how many are selected. */
for (const output of document.querySelectorAll<HTMLOutputElement>('output[data-counts]')) {
  const name = output.dataset['counts'] ?? ''
  const boxes = [...document.querySelectorAll<HTMLInputElement>(`input[name="${name}"]`)]
  const all = document.querySelector<HTMLInputElement>(`input[data-selects="${name}"]`)
  const none = output.textContent
  const visible = (): HTMLInputElement[] => boxes.filter((box) => box.closest('tr')?.hidden !== true)
  const update = (): void => {
    const count = boxes.filter((box) => box.checked).length
    output.textContent = count === 0 ? none : `${count} selected`
    if (!all) return
    const shown = visible()
    all.checked = shown.length > 0 && shown.every((box) => box.checked)
    all.indeterminate = count > 0 && !all.checked
  }
  document.addEventListener('change', (event) => {
    if (all && event.target === all) for (const box of visible()) box.checked = all.checked
    update()
  })
  if (all) all.hidden = false
  // A browser restores the boxes of a page in its history.
  window.addEventListener('pageshow', update)
}

/** Copies a secret or a snippet. The button says the result, and screen readers announce it. */
for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-copies]')) {
  button.hidden = false
  const word = button.querySelector('span') ?? button
  const name = word.textContent ?? ''
  let timer = 0
  button.addEventListener('click', async () => {
    const text = document.getElementById(button.dataset['copies'] ?? '')?.textContent ?? ''
    word.textContent = await navigator.clipboard.writeText(text).then(
      () => 'Copied',
      () => 'Not copied',
    )
    clearTimeout(timer)
    timer = window.setTimeout(() => {
      word.textContent = name
    }, 3000)
  })
}

/** Reads a chosen file into the field that a form sends. Without the script, people paste it. */
for (const picker of document.querySelectorAll<HTMLElement>('[data-reads-file]')) {
  const input = picker.querySelector('input')
  const field = document.getElementById(picker.dataset['readsFile'] ?? '') as HTMLTextAreaElement | null
  picker.hidden = false
  input?.addEventListener('change', async () => {
    const [file] = input.files ?? []
    if (file !== undefined && field !== null) field.value = await file.text()
  })
}

/** Opens the dialog that prints the page or saves it as PDF. */
for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-prints]')) {
  button.hidden = false
  button.addEventListener('click', () => window.print())
}

/** Puts the secret of a link into its field. Browsers never send the fragment to the server. */
for (const field of document.querySelectorAll<HTMLInputElement>('input[data-from-fragment]')) {
  if (location.hash.length <= 1) continue
  field.value = location.hash.slice(1)
  history.replaceState(null, '', location.pathname)
}

/**
 * Updates the live part of a page: requests the page again, and replaces the parts that differ. An
 * XMLHttpRequest parses the page itself, which Trusted Types allow.
 */
const POLL_TIMEOUT_MS = 10_000
/** After a request without an answer. */
const RETRY_MS = 5000

const live = document.querySelector<HTMLElement>('[data-poll]')
if (live !== null) poll(live, Number(live.dataset['poll']))

function poll(live: HTMLElement, afterMs: number): void {
  const offline = live.querySelector<HTMLElement>('[data-offline]')
  setTimeout(() => {
    const request = new XMLHttpRequest()
    request.open('GET', location.href)
    request.responseType = 'document'
    request.timeout = POLL_TIMEOUT_MS
    request.onloadend = () => {
      const page = request.status === 200 ? request.responseXML : null
      const next = page?.getElementById(live.id)
      const isUnavailable = request.status === 0 || request.status >= 500
      // The session has ended, or the page is gone: the browser shows the reason.
      if (!next && !isUnavailable) return location.reload()
      if (offline !== null) offline.textContent = isUnavailable ? (offline.dataset['offline'] ?? '') : ''
      if (page && next) update(live, page)
      const nextMs = next ? Number(next.dataset['poll'] ?? 0) : RETRY_MS
      if (nextMs > 0) poll(live, nextMs)
    }
    request.send()
  }, afterMs)
}

/**
 * A part with the keyboard focus stays, so that the focus does not get lost, unless it is on a
 * button that the new part has as well.
 */
function update(live: HTMLElement, page: Document): void {
  document.title = page.title
  const { activeElement: focused } = document
  for (const part of live.querySelectorAll('[data-part]')) {
    const next = page.getElementById(part.id)
    if (next === null || next.innerHTML === part.innerHTML) continue
    const hasFocus = part.contains(focused)
    const id = focused instanceof HTMLButtonElement ? focused.id : ''
    if (hasFocus && (id === '' || page.getElementById(id) === null)) continue
    part.replaceChildren(...Array.from(next.childNodes, (node) => document.importNode(node, true)))
    if (hasFocus) document.getElementById(id)?.focus()
  }
}

/**
 * Saves a form at each change, one after the other, and shows the result without leaving the page.
 * After the end of a session, the browser sends the form itself, and the answer asks for a sign-in.
 */
for (const form of document.querySelectorAll<HTMLFormElement>('form[data-saves]')) {
  const output = form.querySelector<HTMLElement>('[data-unsaved]')
  let saving: Promise<void> = Promise.resolve()
  let isSaved = true
  /** What was sent before the person has seen a rejection is not sent again by itself. */
  let rejections = 0
  let isLeaving = false
  const save = (button: HTMLElement | null): Promise<void> =>
    new Promise((done) => {
      const sent = new FormData(form, button)
      const request = new XMLHttpRequest()
      request.open('POST', form.action)
      request.responseType = 'document'
      request.timeout = POLL_TIMEOUT_MS
      request.onloadend = () => {
        const page = request.responseXML
        isSaved = request.status === 200
        if (!isSaved) rejections++
        const stored = page?.getElementById(form.id)
        if (page && stored) {
          update(document.body, page)
          // Text that was typed since stays.
          for (const field of form.querySelectorAll<HTMLInputElement>('textarea, input:not([type="hidden"])')) {
            const next = stored.querySelector<HTMLInputElement>(`[name="${field.name}"]`)?.value ?? ''
            // An assignment moves the cursor.
            if (sent.get(field.name) === field.value && next !== field.value) field.value = next
          }
        } else if (request.status === 401) {
          isLeaving = true
          form.requestSubmit(button)
        }
        // A page without the form says that somebody has approved the item.
        const problem = page?.getElementById('rejected')?.textContent ?? output?.dataset['unsaved'] ?? ''
        if (output !== null) output.textContent = stored ? '' : problem
        done()
      }
      request.send(new URLSearchParams(sent as unknown as Record<string, string>))
    })
  form.addEventListener('submit', (event) => {
    // A review changes the whole page.
    if (isLeaving || (event.submitter as HTMLButtonElement | null)?.name === 'review') return
    event.preventDefault()
    const seen = rejections
    saving = saving.then(() => (seen === rejections ? save(event.submitter) : undefined))
  })
  form.addEventListener('input', ({ target }) => {
    if ((target as HTMLInputElement).name !== '') isSaved = false
  })
  form.addEventListener('change', ({ target }) => {
    if ((target as HTMLInputElement).name !== '') form.requestSubmit()
  })
  window.addEventListener('pagehide', () => {
    const fields = new FormData(form) as unknown as Record<string, string>
    if (!isSaved && !isLeaving) navigator.sendBeacon(form.action, new URLSearchParams(fields))
  })
}

/** Whether the person wants keys without Ctrl, Alt or Meta (WCAG 2.1.4). */
const hasKeys = (): boolean => localStorage.getItem('keys') !== 'off'

/** Turns these keys on and off, for all pages. */
for (const label of document.querySelectorAll<HTMLElement>('[data-keys]')) {
  const box = label.querySelector('input')
  if (box === null) continue
  label.hidden = false
  box.checked = hasKeys()
  box.addEventListener('change', () => localStorage.setItem('keys', box.checked ? 'on' : 'off'))
}

/** Presses the buttons and links of keys, and focuses the fields, unless the person is typing. */
document.addEventListener('keydown', (event) => {
  const { key, ctrlKey, altKey, metaKey, target } = event
  const isTyping = (target as Element).matches('textarea, select, input:not([type="checkbox"])')
  if (isTyping || ctrlKey || altKey || metaKey || !/^[123n/]$/.test(key) || !hasKeys()) return
  const found = [...document.querySelectorAll<HTMLElement>(`[data-key="${key}"]`)]
  // The menu of a narrow screen hides its field.
  const shown = found.find((each) => each.offsetParent !== null)
  if (key === '/' && found.length > 0) event.preventDefault()
  if (shown instanceof HTMLInputElement && shown.type === 'search') shown.focus()
  else if (shown !== undefined) shown.click()
  else if (key === '/' && found.length > 0) location.assign('/search')
})

/**
 * Lets a file be dropped on its form, and refuses one that is too large before it is sent. Says
 * that the file is being read, which takes up to a minute.
 */
for (const form of document.querySelectorAll<HTMLFormElement>('form[data-drops]')) {
  const input = form.querySelector<HTMLInputElement>('input[type="file"]')
  const area = form.querySelector('.drop')
  const text = form.querySelector('[data-drop-text]')
  const button = form.querySelector<HTMLButtonElement>('button[data-busy]')
  if (input === null || area === null || text === null || button === null) continue
  const label = button.textContent
  const idle = (): void => {
    button.disabled = false
    button.textContent = label
  }
  const check = (): void => {
    const isTooLarge = (input.files?.[0]?.size ?? 0) > Number(input.dataset['bytesMax'])
    input.setCustomValidity(isTooLarge ? (input.dataset['tooLarge'] ?? '') : '')
    input.reportValidity()
  }
  text.textContent = 'Capture or log: drop it here, or choose it'
  const over = (isOver: boolean) => (event: Event) => {
    event.preventDefault()
    area.classList.toggle('over', isOver)
  }
  area.addEventListener('dragover', over(true))
  area.addEventListener('dragleave', over(false))
  area.addEventListener('drop', (event) => {
    over(false)(event)
    const files = (event as DragEvent).dataTransfer?.files
    if (files === undefined || files.length !== 1) return
    input.files = files
    check()
  })
  input.addEventListener('change', check)
  form.addEventListener('submit', () => {
    button.disabled = true
    button.textContent = button.dataset['busy'] ?? ''
  })
  // The browser may show this page again as it was when the form was sent.
  window.addEventListener('pageshow', idle)
}

import { PageHead } from '../design/parts.tsx'
import { FILE_FIELD, FILE_MIB_MAX } from '../try-file/limits.ts'
import type { TriedView } from '../views/try-file.ts'
import { TriedFile } from './tried-file.tsx'

export interface TryFileProps {
  readonly nowMs: number
  readonly mayReadTokens: boolean
  readonly error?: string
  readonly tried?: TriedView
}

/** A form for a file, below what the last file showed. */
export function TryFile({ nowMs, mayReadTokens, error, tried }: TryFileProps) {
  return (
    <>
      <PageHead title="Try a file" about="What a capture or a log would show. Nothing of it is stored." />
      {tried !== undefined && <TriedFile view={tried} nowMs={nowMs} mayReadTokens={mayReadTokens} />}
      <FileForm title={tried === undefined ? 'Choose a file' : 'Try another file'} error={error} />
    </>
  )
}

function FileForm({ title, error }: { readonly title: string; readonly error: string | undefined }) {
  return (
    <section class="card">
      <header>
        <h2>{title}</h2>
      </header>
      <form class="stack body" method="post" action="/try-file" encType="multipart/form-data" data-drops>
        <div class="field">
          <label class="drop" for={FILE_FIELD}>
            <span data-drop-text>Capture or log</span>
            <input
              id={FILE_FIELD}
              name={FILE_FIELD}
              type="file"
              required
              aria-invalid={error === undefined ? undefined : 'true'}
              aria-describedby={error === undefined ? 'file-hint' : 'file-hint file-error'}
              data-bytes-max={FILE_MIB_MAX * 1024 * 1024}
              data-too-large={`The file is larger than ${FILE_MIB_MAX} MiB. Try a part of it`}
            />
          </label>
          <p id="file-hint" class="hint">
            A capture (pcap, pcapng), or a log of a firewall, proxy or DNS server. Plain, gzip or zstd, up to{' '}
            {FILE_MIB_MAX} MiB. Large files take up to a minute.
          </p>
          {error !== undefined && (
            <p id="file-error" class="error" role="alert">
              {error}
            </p>
          )}
        </div>
        <div class="row">
          <button class="first" type="submit" data-busy="Reading the file …">
            Read the file
          </button>
        </div>
      </form>
    </section>
  )
}

import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../test/support/free-port.ts'
import { NGINX, nginxTemporaryFolders } from '../../test/support/nginx.ts'
import { listening } from '../../test/support/syslog-ng-process.ts'
import { stopped } from '../harness.ts'

/** nginx with one worker, serving the body as a file, or the same bytes in gzip as a file. */
export async function startNginx(
  directory: string,
  { body, gzipBody }: { readonly body: Buffer; readonly gzipBody: Buffer },
  files: { readonly key: string; readonly certificate: string },
  through: readonly string[],
) {
  const root = mkdtempSync(join(directory, 'nginx-'))
  mkdirSync(join(root, 'www/api/v1'), { recursive: true })
  writeFileSync(join(root, 'www/api/v1/discovery'), body)
  writeFileSync(join(root, 'www/api/v1/discovery.gz'), gzipBody)
  const port = await freePort()
  const tls = `ssl_certificate ${files.certificate}; ssl_certificate_key ${files.key};`
  writeFileSync(
    join(root, 'nginx.conf'),
    `daemon off; worker_processes 1; user root; pid ${join(root, 'pid')}; error_log stderr error;
events { worker_connections 1024; }
http { access_log off; sendfile on; gzip_static on; tcp_nopush on; open_file_cache max=1000; default_type application/json; keepalive_requests 1000000000;
  ${nginxTemporaryFolders(root)}
  server { listen 127.0.0.1:${port} ssl; ${tls} root ${join(root, 'www')}; } }
`,
  )
  const [command = NGINX, ...words] = [...through, NGINX, '-p', root, '-e', 'stderr', '-c', join(root, 'nginx.conf')]
  const started = spawn(command, words, { stdio: 'inherit' })
  await listening(port)
  return {
    name: 'nginx with a file, and gzip_static',
    url: `https://127.0.0.1:${port}/api/v1/discovery`,
    stop: () => stopped(started),
  }
}

import { join } from 'node:path'
import { REPOSITORY } from './programs.ts'

/** `node deploy/setup.mjs --full` unpacks nginx here. */
export const NGINX = join(REPOSITORY, 'node_modules/.cache/nginx/usr/sbin/nginx')

/** Directives for `http`: an unpacked nginx has no folders of its own. */
export function nginxTemporaryFolders(directory: string): string {
  return ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${directory}/${name};`)
    .join(' ')
}

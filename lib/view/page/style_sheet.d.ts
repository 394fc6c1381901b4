/** esbuild bundles imported style sheets into page.css. */
declare module '*.css'

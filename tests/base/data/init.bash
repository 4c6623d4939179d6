module() {
  [ "$1" = load ] || return 1
  shift
  for name in "$@"; do
    if [ "$name" != cuda/13.0 ]; then
      echo "Lmod has detected the following error: The following module(s) are unknown:" >&2
      echo "   \"$name\"" >&2
      return 1
    fi
    export PATH="/opt/$name/bin:$PATH" CUDA_HOME="/opt/a b
c"
    unset OLD_CUDA
  done
}

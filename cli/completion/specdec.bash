# Completion of specdec for bash. It asks the program what may stand in the place of the word at the cursor.
# For one shell: source <(specdec completion bash)
_specdec() {
  local -a words=()
  local word line kind found
  # bash cuts words at "=", too.
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ ${#words[@]} -gt 0 && ($word == = || ${words[-1]} == --*=) ]]; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
  done
  local current=${words[-1]} cut=
  [[ $current == --*=* ]] && cut=${current%%=*}=
  COMPREPLY=()
  {
    read -r kind
    while IFS= read -r line; do
      found=${line%%$'\t'*}
      if [[ $found == "$current"* ]]; then COMPREPLY+=("${found#"$cut"}"); fi
    done
  } < <("$1" completion bash "${words[@]}" 2>/dev/null)
  if [[ $kind == files ]]; then
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "${current#"$cut"}")
    compopt -o filenames 2>/dev/null
  fi
}
complete -F _specdec specdec
